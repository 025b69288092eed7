"""Model construction: builder, editor, scenes, validation and inverse weights."""
