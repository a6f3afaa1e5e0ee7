"""Request bodies (`*Body`) and responses (`*Out`), one module per noun."""
