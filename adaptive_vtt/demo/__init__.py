"""What the demo, the documentation and the examples run on: phantoms, drawn scenes, a captioner.

The model endpoint of ``avtt serve-demo`` is ``demo.server``.
"""

from typing import TYPE_CHECKING

from ..utils.importing import lazily

if TYPE_CHECKING:
    from .drawn_scenes import scenes
    from .phantom_frames import phantom
    from .template_captioner import TemplateCaptioner

__getattr__, __dir__ = lazily(__name__)
__all__ = ["TemplateCaptioner", "phantom", "scenes"]
