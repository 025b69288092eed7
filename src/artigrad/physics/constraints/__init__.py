"""Stage 4: contacts, limits and dry friction are rows of one problem; a law says what their forces are."""
