from pathlib import Path

from sfora_ray.config.methods import methods_as_markdown
from sfora_ray.config.reference import config_reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_configuration_reference_is_what_the_types_say() -> None:
    """Renew it with `sfora-ray config reference` between the two markers."""
    shown = README.split("<!-- reference -->\n")[1].split("<!-- /reference -->")[0]
    assert shown.strip() == config_reference().strip()


def test_table_of_methods_is_what_the_cards_say() -> None:
    """Renew it with `sfora-ray methods --markdown` between the two markers."""
    shown = README.split("<!-- methods -->\n")[1].split("<!-- /methods -->")[0]
    assert shown.strip() == methods_as_markdown().strip()


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in (ROOT / "sfora_ray").glob("*/__init__.py")}
    assert [room for room in sorted(rooms) if f"`sfora_ray/{room}`" not in README] == []
