"""Robot files: loading of MJCF, URDF and meshes, saving of MJCF."""
