"""What does a real question look like when it is answered? The bilingual demonstration."""
