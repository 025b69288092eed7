"""Robot files: MJCF, URDF and meshes in, MJCF out."""
