"""The ids of every scenario the product promises, and the mark that ties a test to one.

What each id means stands in docs/reference/requirements.md. An id that nothing shows yet is in
`PENDING`; it leaves that set in the change that adds its first test.
"""

import pytest

ALL = frozenset(
    """
    A-active A-background A-waiting A-archived A-transitions A-from-chat A-fields A-cron
    A-once A-now A-context A-step A-data A-question A-session-stored A-session-resumed
    A-session-expired A-source A-roles A-one-model A-api A-latency A-pause
    A-after-complete A-poll A-ready A-batch A-cap A-spawn A-mcp-load A-mcp-isolation
    A-prompt-context A-prompt-format A-needs-input A-continue A-complete-once
    A-complete-cron A-mcp-failure A-timeout A-auth-expired A-starvation B-task B-kinds
    B-status B-fields B-tool-scope B-command B-memory-only B-persist B-runs B-max-runs
    B-notify B-tick B-single B-preempt B-timeout B-retry B-run-now B-quiet B-compact
    B-outbound B-discord B-cli B-tools B-origin B-propose B-approve-discord
    B-approve-cli B-discovery B-discovery-context B-discovery-limits B-config B-memory
    B-clean-store B-routing B-events B-limit B-chaining B-budget B-multichannel C-launch
    C-completed C-error C-cancel C-resumed C-output C-persist C-progress C-batch
    C-resume C-resume-only-completed C-resume-concurrent C-resume-expired C-resume-count
    C-block C-list C-block-done C-block-timeout C-block-resume C-events C-mcp Z-ask
    Z-approve Z-allowance Z-connections Z-context Z-honest Z-receipts Z-first Z-inbox
    Z-grants Z-model-key Z-setup Z-away Z-remind Z-everything-off Z-mine B-folder
    B-signed-in B-now B-asked-how B-chat-anywhere C-agents C-long Z-model-change Z-zone
    Z-cli-whole Z-elicit Z-import Z-attach Z-push Z-quiet Z-conditions
    """.split()
)

PENDING = frozenset(
    """
    B-outbound
    B-discord
    B-cli
    B-approve-discord
    B-events
    B-multichannel
    B-chat-anywhere
    Z-quiet
    Z-conditions
    """.split()
)


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Say which scenarios a test shows to work."""
    return pytest.mark.requirement(*ids)
