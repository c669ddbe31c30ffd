"""What a label names, guessed from its words: "forceps" is an instrument, "text" no finding.

The words are those of the sets that EndoBench is made of, and their likes. A guess is told, and
``--role`` overrules it.
"""

import re

from .taxonomy import ARTEFACT, LESION

_WORDS = (
    (ARTEFACT, "text|texts|letters|caption|timestamp|watermark|overlay|logo|border|black frame|"
     "specularit(y|ies)|speculars?|specular reflections?|reflections?|glare|blur|blurry|blurred|"
     "bubbles?|foam|artefacts?|artifacts?|saturation|contrast|background"),
    ("phase", "phases?|gallbladder dissection|(calot )?triangle dissection|gallbladder packaging|"
     "gallbladder retraction|cleaning coagulation|clipping cutting"),
    ("step", "steps?"),
    ("grade", "mayo|grades?|grading|severity|forrest"),
    ("preparation", "bbps|boston|preparation|prep|cleanliness|cleansing"),
    ("treatment", "dyed|lifted|resection|polypectomy|injection|coagulation|ligation|clipped"),
    (LESION, "polyps?|ulcers?|ulcerative|ulceration|lesions?|tumou?rs?|cancers?|carcinoma|varices|"
     "bleeding|blood|inflammation|erosions?|erythema|angiectasia|diverticul(a|um)|barretts?|"
     "foreign bod(y|ies)|worms?|abnormal|pathology"),
    ("instrument", "instruments?|tools?|forceps|scissors|shears|snares?|graspers?|needles?|"
     "drivers?|clip|clipper|clip applier|hook|bipolar|irrigator|suction|stapler|trocar|"
     "catheter|probe|specimen bag"),
    ("action", "cutting|grasping|retracting|dissecting|suturing|idle|action"),
    ("landmark", "pylorus|cecum|caecum|appendix|valve|z line|retroflex|retroflexion|papilla|"
     "ampulla|cardia|fundus|antrum|incisura|angulus|ileum|dentate line|hepatic flexure|"
     "splenic flexure|landmark"),
    ("organ", "o?esophagus|stomach|duodenum|jejunum|small (intestine|bowel)|intestine|"
     "large (intestine|bowel)|colon|rectum|organ|liver|gallbladder|pharynx|larynx"),
)  # fmt: skip
"""Role -> words that tell of it. The first that fits is taken: a polyp of the colon is a lesion.
Stool stays among the findings: a region of it is what a polyp may be taken for."""


def role_of(name: str) -> str:
    """The role that a label's words tell of, one of ``taxonomy.ROLES``; where none does, lesion.

    "clip_applier", "ClipApplier" and "clip-applier" are the same words.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
    fits = (role for role, told in _WORDS if re.search(rf"\b({told})\b", words))
    return next(fits, LESION)
