"""`utuple bench http`: one HTTP door beside the SDK, in one run."""
