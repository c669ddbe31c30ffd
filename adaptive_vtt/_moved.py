"""Old dotted paths, for one release: importing one gives the module that took its place.

Of a path that is not in the table itself the longest beginning counts: what lay in a package that
moved as a whole lies in the new one under the same name.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "adapters": "spec.models",
    "audit_key": "engine.audit_key",
    "belief": "engine.belief",
    "benchmark.truth": "engine.census",
    "building": "spec.building",
    "canaries": "engine.canaries",
    "captions.building": "spec.oracles",
    "captions.findings": "oracles.caption_findings",
    "captions.memory": "oracles.caption_memory",
    "captions.rates": "oracles.caption_rates",
    "captions.rules": "oracles.caption_rules",
    "captions.selection": "relations.reic_selection",
    "captions.view": "oracles.caption_view",
    "captions.words": "captions.language",
    "cli.checking": "cli.run_checks",
    "cli.comparing": "cli.comparison",
    "cli.exporting": "cli.export",
    "cli.interrupting": "cli.signals",
    "cli.labelling": "cli.label_desk",
    "cli.planning": "cli.dry_run",
    "cli.running": "cli.run_folder",
    "cli.serving": "cli.demo_endpoint",
    "cli.showing": "cli.previews",
    "cli.starting": "cli.start_folder",
    "cli.uniform": "cli.baselines",
    "comparing": "benchmark",
    "datasets.class_folder": "datasets.formats.class_folder",
    "datasets.coco": "datasets.formats.coco",
    "datasets.coco_masks": "datasets.formats.coco_masks",
    "datasets.endobench": "datasets.formats.endobench",
    "datasets.fashion_mnist": "datasets.formats.fashion_mnist",
    "datasets.folder": "datasets.formats.table_file",
    "datasets.headers": "utils.image_headers",
    "datasets.idrid": "datasets.formats.idrid",
    "datasets.image_folder": "datasets.formats.image_folder",
    "datasets.images": "utils.image_files",
    "datasets.isic": "datasets.formats.isic",
    "datasets.mask_folder": "datasets.formats.mask_folder",
    "datasets.medmnist": "datasets.formats.medmnist",
    "datasets.medvqa": "datasets.formats.medvqa",
    "datasets.npz": "datasets.formats.npz",
    "datasets.phantom": "datasets.synthetic.phantom",
    "datasets.registering": "datasets.synthetic.registering",
    "datasets.rows": "datasets.formats.image_rows",
    "datasets.scenes": "datasets.synthetic.scenes",
    "datasets.synthetic.scenery.words": "datasets.synthetic.scenery.vocabulary",
    "datasets.voc": "datasets.formats.voc",
    "demo_server.captions": "demo_server.caption_brain",
    "devices": "utils.devices",
    "exporting": "export.failures",
    "failing": "engine.failing",
    "files": "utils.files",
    "inquiry": "engine.source_queue",
    "journal.memory": "journal.in_memory",
    "journal.schema3": "journal.migrations",
    "judging": "engine.judge",
    "labelling.pictures": "labelling.item_pictures",
    "law": "engine.law",
    "lessons": "engine.draw_order",
    "memory": "oracles.memory",
    "models.attempts": "models.network.attempts",
    "models.background": "models.network.background",
    "models.chat_replies": "models.network.chat_replies",
    "models.endpoint": "models.network.endpoint",
    "models.fashion_cnn": "models.demo.fashion_cnn",
    "models.http": "models.network.http",
    "models.http_json": "models.network.http_json",
    "models.keys": "models.network.keys",
    "models.limits": "models.network.limits",
    "models.loading": "models.local.loading",
    "models.network.prompts": "models.network.prompt_templates",
    "models.onnx": "models.local.onnx",
    "models.open_inference": "models.network.open_inference",
    "models.openai_chat": "models.network.openai_chat",
    "models.picture": "models.network.image_encoding",
    "models.prices": "models.network.prices",
    "models.prompts": "models.network.prompt_templates",
    "models.python": "models.local.python",
    "models.recorded": "models.local.recorded",
    "models.recorded_captions": "models.local.recorded_captions",
    "models.simulated": "models.demo.simulated",
    "models.subprocess_lines": "models.local.subprocess_lines",
    "models.template_captioner": "models.demo.template_captioner",
    "models.tensors": "models.local.tensors",
    "models.wire": "models.network.wire",
    "oracles.captions": "oracles.reduced_captions",
    "oracles.words": "oracles.contains_truth",
    "pictures": "utils.image_codec",
    "planning": "benchmark.rehearsal",
    "pool": "engine.candidates",
    "prepared": "export.prompt_images",
    "proxies": "engine.proxies",
    "purse": "engine.budget",
    "question": "types",
    "questioner": "engine.selector",
    "queue": "engine.call_queue",
    "randomness": "utils.random_streams",
    "relations.prompts": "relations.visual_prompts",
    "report.captions": "report.caption_violations",
    "report.standing": "report.target_status",
    "resuming": "spec.resuming",
    "rows": "journal.rows",
    "running": "engine.run_loop",
    "serving": "demo_server",
    "serving.answers": "demo_server.demo_brain",
    "serving.captions": "demo_server.caption_brain",
    "serving.pictures": "demo_server.image_decoding",
    "settings": "engine.settings",
    "sourcing": "engine.source_calls",
    "tables": "utils.tables",
    "values": "journal.answer_json",
    "vqa": "datasets.vqa",
    "vqa.boxes": "datasets.vqa.boxes",
    "vqa.building": "datasets.vqa.question_building",
    "vqa.extraction": "oracles.choice_extraction",
    "vqa.geometry": "relations.places",
    "vqa.making": "datasets.vqa.question_making",
    "vqa.medvqa": "datasets.vqa.medvqa_questions",
    "vqa.published": "report.endobench_published",
    "vqa.referees": "oracles.judge_models",
    "vqa.selection": "datasets.vqa.selection",
    "vqa.tables": "report.medtest_tables",
    "vqa.taxonomy": "datasets.vqa.taxonomy",
}
"""Old path -> new path, both below the package."""


class _Moved(MetaPathFinder, Loader):
    """Finds a module by its old path and says where it is now."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._specs: dict[int, ModuleSpec | None] = {}  # by the id of the module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = self._new(fullname)
        if new is None:
            return None
        warnings.warn(
            f"{fullname} is now {new}; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return ModuleSpec(fullname, self, origin=new)

    def _new(self, fullname: str) -> str | None:
        """Where the module of this path is now; None where it did not move."""
        first, *names = fullname.split(".")
        if first != self._package:
            return None
        for count in range(len(names), 0, -1):
            moved = MOVED.get(".".join(names[:count]))
            if moved is not None:
                return ".".join([first, moved, *names[count:]])
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(spec.origin))
        self._specs[id(module)] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module ran under its new path; only what the import changed is put back."""
        module.__spec__ = self._specs.pop(id(module))


def install(package: str) -> None:
    """Lets the old paths below ``package`` be imported."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        # first: the path of a package that moved would give its modules once more, under old names
        sys.meta_path.insert(0, _Moved(package))
