"""Models: builder, editor, scenes, validation and inverse weights."""
