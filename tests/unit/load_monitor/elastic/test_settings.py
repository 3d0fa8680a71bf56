"""elastic.toml: what is wrong is refused with the field, the value and the rule."""

from __future__ import annotations

import pytest

from load_monitor.elastic.settings import Kind, settings_of
from utuple.errors import InvalidInput


def test_an_empty_file_is_the_default_with_headroom_500() -> None:
    settings = settings_of("")
    assert settings.policy.machines.headroom_mb == 500
    assert settings.provisioner.kind is Kind.LOCAL


@pytest.mark.parametrize(
    ("text", "field", "rule"),
    [
        ("[servers]\nlwer = 0.1", "servers", "nearest is lower"),
        ("[machine]", "elastic.toml", "nearest is machines"),
        ("[servers]\nmin = 5\nmax = 4", "servers.min", "must not be above servers.max, 4"),
        ("[servers]\nmin = 0", "servers.min", "1 to"),
        ("[servers]\ncpu = 0", "servers.cpu", "must be above 0"),
        ("[servers]\ncpu = nan", "servers.cpu", "0 or more"),
        ("[servers]\ncpu = inf", "servers.cpu", "0 or more"),
        ("[servers]\ncpu = true", "servers.cpu", "must be a number"),
        ("[servers]\nmemory_mb = -1", "servers.memory_mb", "0 or more"),
        ("[servers]\ncpu = 9", "servers.cpu", "more than the whole area has, 4 vCPU"),
        ("[servers]\nmemory_mb = 7900", "servers.memory_mb", "whole area has, 8192 MB"),
        ("[servers]\ntarget = 0.9", "servers.target", "lower < target <= upper"),
        ("[servers]\nlower = 0.7", "servers.target", "lower < target <= upper"),
        ("[machines]\nheadroom_mb = 100", "machines.system_mb", "machines.headroom_mb, 100"),
        ("[machines]\nfixed_cpu = 1", "machines.fixed_cpu", "together with"),
        (
            "[machines]\nfixed_cpu = 1\nfixed_memory_mb = 512",
            "machines.fixed_memory_mb",
            "no server fits",
        ),
        ("[area]\ncpu = 1.5", "area.cpu", "whole number"),
        ('[provisioner]\nkind = "lokal"', "provisioner.kind", "nearest is local"),
        ('[provisioner]\nkind = "exec"', "provisioner.command", "exec"),
        ("[provisioner]\nlimit_s = 0", "provisioner.limit_s", "above 0"),
        ("servers = 3", "servers", "must be a table"),
        ("[servers", "elastic.toml", "is no TOML"),
        ("simulation = 1", "simulation", "must be a table"),
    ],
)
def test_what_is_wrong_is_named(text: str, field: str, rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings_of(text)
    assert refused.value.field == field
    assert rule in str(refused.value)
