"""pictures that people send are kept with their turn, as long as its texts."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COMMENT = (
    "Pictures that came with a message, as the model saw them: scaled down, without what cameras write beside the "
    "pixels. As long as the texts of their turn. Service; never training."
)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "turn_pictures",
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Uuid()),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name="fk_turn_pictures_turn_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_turn_pictures_person_id", ondelete="CASCADE"),
        sa.UniqueConstraint("turn_id", "number", name="uq_turn_pictures_turn_id_number"),
        comment=_COMMENT,
    )
    op.create_index("ix_turn_pictures_turn_id", "turn_pictures", ["turn_id"])
    op.create_index("ix_turn_pictures_person_id", "turn_pictures", ["person_id"])


def downgrade() -> None:
    """Take back."""
    op.drop_table("turn_pictures")
