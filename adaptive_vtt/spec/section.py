"""What all sections of a SPEC.toml have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Fields are checked strictly; one that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)
