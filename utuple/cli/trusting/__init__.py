"""Who may do what: `grant` (giving), `revoke`, `grants`, `audit`, `whoami` and `authority` (looking)."""
