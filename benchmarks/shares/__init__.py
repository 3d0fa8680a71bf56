"""`utuple bench shares`: commands while sCA servers join, leave and are killed."""
