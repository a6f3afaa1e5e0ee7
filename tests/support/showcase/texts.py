"""Longer texts of the stories."""

DIGEST = """\
Four mails need you, the other 23 are filed.

1. **Priya Raman** asks whether the review can move to **Thursday at 14:00**. You are free then.
2. The hall wants the deposit of $180 by Friday.
3. *Cedar & Finch* sent the corrected contract; only clause 7 changed.
4. Your passport is ready for collection.
"""
DIGESTS = (DIGEST, "Two mails need you: the lease, and a parcel at the corner shop.", DIGEST)
READING = "{number} articles, two of them long. The one on tide tables is the best."
GOOD_NIGHT = """\
Everything passed: **1,204 tests in 4 min 2 s**. One is flaky, `test_late_renewal`: it failed in 2 \
of 10 tries, because it compares two clocks. I have a fix that passed 50 times in a row.
"""
KNOWN = {
    "Flaky test": "test_late_renewal",
    "Branch": "fix/late-renewal",
    "Step": "waits for your yes",
}
WORKFLOW = "name: nightly\non:\n  schedule:\n    - cron: '0 8 * * 1-5'\n"
SLOW_BUILDS = """\
It is one step: **packaging** went from 48 s to 3 min 5 s.

| Step | Before | Now | Change |
|---|--:|--:|--:|
| Check out | 6 s | 6 s | |
| Tests | 2 min 10 s | 2 min 14 s | +4 s |
| Packaging | 48 s | 3 min 5 s | **+2 min 17 s** |

The cache key has the date in it since `a41f9c2`, so no run finds what the one before left:

```yaml
- uses: cache
  with:
    key: packages-${{ runner.os }}-${{ steps.today.outputs.date }}
    path: ~/.cache/packages   # 412 MB, built anew each time
```

Without the date it is as fast as before. I tried it twice: 49 s and 51 s.
"""
KETTLE = """\
Three are good, and one is the one I would take.

- **Alder 1.0** heats a litre in 2 min 40 s, and its lid opens with one hand.
- *Copper Creek* is quieter, but its handle gets warm.
- The **Nova** is cheapest at $39, and has no scale inside.

Take the Alder: [a test of kettles](https://reviews.example/kettles) measured all three.
"""
TRIP_TITLE = "رحلة إلى الجبال"
TRIP = "مرحبا، أريد خطة لرحلة قصيرة إلى الجبال، ثلاثة أيام، مع ميزانية 400 $ وفندق قرب المحطة."
TRIP_PLAN = """\
بالتأكيد. هذه خطة من **ثلاثة أيام** ضمن الميزانية:

1. اليوم الأول: القطار في 9:15، ثم المشي إلى البحيرة.
2. اليوم الثاني: الممر الشمالي (Trail 7) حتى الظهر.
3. اليوم الثالث: السوق، والعودة في 16:40.

المجموع 362 $.
"""
PLANS = "Which plan of Tern shall I compare?"
INVOICE = """\
The invoice of Bright Paper is $40 higher than the order. What shall I do with it?
They added “express delivery”, which nobody asked for. It is due on Friday."""
HALF_A_REPLY = """\
Here is a shorter one:

> Dear Mr Okafor,
>
> the heating in the back room has been cold since Sunday.

It now has **three sentences** and asks for one thing only. The second paragraph about the """
