"""The provisioner that elastic.toml names."""

from __future__ import annotations

from pathlib import Path

from load_monitor.elastic.settings import ElasticSettings, Kind
from load_monitor.provisioning.contract import Provisioner
from load_monitor.provisioning.local import LocalProvisioner
from load_monitor.provisioning.script import ScriptProvisioner
from utuple.errors import InvalidInput


def provisioner_for(settings: ElasticSettings, data: str) -> Provisioner:
    """`data`: the folder of the cluster on this machine; empty: it has none."""
    rules = settings.provisioner
    if rules.kind is Kind.EXEC:
        return ScriptProvisioner(rules.command, rules.limit_s)
    if rules.kind is Kind.KUBERNETES:
        from load_monitor.provisioning.stateful_set import StatefulSetProvisioner, api_client

        return StatefulSetProvisioner(
            api_client(), rules.namespace, rules.stateful_set, rules.pool, rules.limit_s
        )
    if not data:
        rule = "makes servers of a cluster on this machine: name its folder with --data"
        raise InvalidInput("provisioner.kind", rules.kind.value, rule)
    return LocalProvisioner(Path(data), settings.policy, rules.ready_s, rules.limit_s)
