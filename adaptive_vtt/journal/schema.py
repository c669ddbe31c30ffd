"""The tables of a journal."""

VERSION = 6
FIGURES = (
    "low_base", "high_base", "low_predicted", "high_predicted", "scale", "lo", "hi", "foreseen",
    "tilt", "tilt_bound", "uniform", "next_down", "next_up", "next_tilt", "next_foreseen",
)  # fmt: skip
"""The numbers of a move in the order of ``MoveRow.figures``: columns of "moves"."""
FACTS = """
CREATE TABLE facts (          -- the audit's settings, its space, and how it ended; a log
  position INTEGER PRIMARY KEY,  -- 0, 1, 2 ...; the last row of a name is its value now
  name TEXT NOT NULL,
  value TEXT NOT NULL         -- JSON
);
"""
CHAIN = """
CREATE TABLE chain (          -- a seal for each row of facts, draws, calls and sources
  link INTEGER PRIMARY KEY,   -- 0, 1, 2 ... in the order of writing
  kind TEXT NOT NULL,         -- "fact", "draw", "call", "source", "judging", "belief"
  row INTEGER NOT NULL,       -- position, draw, call, source, position, draws
  seal TEXT NOT NULL          -- hash of the row and of the seal before it: see chain.py
);
"""
ROWS = """
CREATE TABLE draws (          -- one random choice each, written before its call is sent
  draw INTEGER PRIMARY KEY,   -- 0, 1, 2 ...
  question INTEGER NOT NULL,  -- the question drawn
  call INTEGER NOT NULL UNIQUE,
  sample TEXT NOT NULL,       -- the source image's id
  learned INTEGER NOT NULL,   -- how many draws had been learnt from when the proposal was made
  probability REAL NOT NULL,  -- of the question drawn
  proposal BLOB NOT NULL,          -- all probabilities above zero (packed_proposal.py)
  why TEXT NOT NULL,          -- what the strategy saw; JSON
  elapsed REAL NOT NULL       -- seconds of audit so far
);
CREATE TABLE moves (          -- what each draw fixed for each target before its call was sent
  draw INTEGER NOT NULL REFERENCES draws (draw),
  target INTEGER NOT NULL,    -- its place in the fact "certificate"
  members TEXT NOT NULL,      -- the call's questions that belong to it; JSON
  active INTEGER NOT NULL,    -- 0 where no candidate belonged to it
  low_base REAL NOT NULL, high_base REAL NOT NULL,
  low_predicted REAL NOT NULL, high_predicted REAL NOT NULL,
  scale REAL NOT NULL, lo REAL NOT NULL, hi REAL NOT NULL, foreseen REAL NOT NULL,
  tilt REAL NOT NULL, tilt_bound REAL NOT NULL, uniform REAL NOT NULL,
  next_down REAL NOT NULL, next_up REAL NOT NULL, next_tilt REAL NOT NULL,
  next_foreseen REAL NOT NULL,
  PRIMARY KEY (draw, target)
) WITHOUT ROWID;
CREATE TABLE calls (          -- one paid answer each
  position INTEGER PRIMARY KEY,  -- order of commit
  call INTEGER NOT NULL UNIQUE REFERENCES draws (call),
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,  -- the part of it that no server confirmed
  elapsed REAL NOT NULL
);
CREATE TABLE answers (        -- one row per question that a call answered
  question INTEGER PRIMARY KEY,
  call INTEGER NOT NULL REFERENCES calls (call),
  truth INTEGER,              -- expected: 0 or 1; NULL where unknown (not judged)
  answer REAL,                -- P(yes), a mask's score, 1 for right words; NULL: unanswered
  unanswered TEXT,            -- why there is no answer, or why it is excluded; else NULL
  loss REAL,                  -- 0..1; NULL: not judged; a placeholder where excluded
  coordinate REAL,            -- a = (P(yes) + truth) / 2; NULL without answer or truth
  said TEXT,                  -- the answer in words, where the model gives words
  details TEXT                -- what else the oracle found in it; JSON
);
CREATE INDEX answers_by_call ON answers (call);
CREATE TABLE sources (        -- answers about source images, where the oracle needs them
  source INTEGER PRIMARY KEY, -- which sample, concept and version: see source_calls.py
  answers TEXT NOT NULL,      -- one per concept sent, JSON (answer_json.py)
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,
  elapsed REAL NOT NULL
);
CREATE TABLE pictures (       -- PNGs of some calls that went wrong, for the report
  call INTEGER PRIMARY KEY REFERENCES calls (call),
  source BLOB NOT NULL,
  follow_up BLOB NOT NULL
);
"""
JUDGING = """
CREATE TABLE judging (        -- where a judge model is asked
  position INTEGER PRIMARY KEY,  -- order of commit
  call INTEGER NOT NULL REFERENCES draws (call),
  question INTEGER NOT NULL,  -- -1: the answer to the call as it came; else what the judge said
  asked TEXT NOT NULL,        -- a hash of the words that the judge was sent
  said TEXT NOT NULL,         -- the answers, or the reply; JSON (answer_json.py)
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,
  elapsed REAL NOT NULL,
  UNIQUE (call, question)
);
"""
BELIEFS = """
CREATE TABLE beliefs (        -- what was believed, at checkpoints
  draws INTEGER PRIMARY KEY,  -- how many draws had been learnt from
  figures TEXT NOT NULL       -- by name; JSON (belief_groups.py)
);
"""
SCHEMA = FACTS + ROWS + JUDGING + BELIEFS + CHAIN


def statements(script: str) -> list[str]:
    """The statements of a script one by one, to be run within one transaction."""
    return [part for part in script.split(";\n") if part.strip()]
