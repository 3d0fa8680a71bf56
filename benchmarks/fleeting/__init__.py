"""The benchmark `fleeting`: events of lifetime 0, which leave nothing behind."""
