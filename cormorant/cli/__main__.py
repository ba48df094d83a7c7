"""``python -m cormorant.cli`` is ``cormorant``."""

import sys

from cormorant.cli.app import main

sys.exit(main())
