"""Metadata domains: users set theirs, and the protocol's are left alone."""

from __future__ import annotations

import pytest

from deltaic.commands.domain_metadata import (
    remove_domain_metadata,
    set_domain_metadata,
    user_domains,
)
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import InvalidArgumentError, ProtocolError
from tests.support.definitions import create, write
from tests.support.memory_log import MemoryFile, MemoryLog

POLICY = RetryPolicy()


def supporting() -> MemoryLog:
    return create(MemoryFile("f"), feature_domainMetadata="supported")


@pytest.mark.protocol("domain-metadata-3")
def test_domain_is_set_changed_and_removed_with_its_last_configuration() -> None:
    log = supporting()
    set_domain_metadata(log.table, "app", "1", log, POLICY)
    set_domain_metadata(log.table, "app", "2", log, POLICY)
    assert user_domains(log.table, log) == {"app": "2"}
    result = remove_domain_metadata(log.table, "app", log, POLICY)
    assert user_domains(log.table, log) == {}
    assert log.actions(result.version, "domainMetadata") == [
        {"domain": "app", "configuration": "2", "removed": True}
    ]
    (info,) = log.actions(result.version, "commitInfo")
    assert info["operationParameters"] == {"domain": "app", "removed": "true"}


def test_removal_of_a_domain_that_is_not_there_makes_no_version() -> None:
    log = supporting()
    assert remove_domain_metadata(log.table, "app", log, POLICY).skipped
    assert log.version == 0


@pytest.mark.protocol("domain-metadata-1", "writer-domain-metadata-2")
@pytest.mark.parametrize("domain", ["delta.rowTracking", "Delta.anything", "delta."])
def test_domains_of_the_protocol_are_refused(domain: str) -> None:
    log = create(MemoryFile("f"), enableRowTracking="true")
    with pytest.raises(InvalidArgumentError, match=domain):
        set_domain_metadata(log.table, domain, "{}", log, POLICY)
    with pytest.raises(InvalidArgumentError, match=domain):
        remove_domain_metadata(log.table, domain, log, POLICY)
    assert log.version == 0


@pytest.mark.protocol("domain-metadata-4", "domain-metadata-5")
def test_table_without_the_feature_is_refused_with_what_to_do() -> None:
    log = create(MemoryFile("f"))
    with pytest.raises(ProtocolError, match=r"addFeatureSupport\('domainMetadata'\)"):
        set_domain_metadata(log.table, "app", "{}", log, POLICY)


@pytest.mark.protocol("domain-metadata-2", "writer-domain-metadata-1", "writer-domain-metadata-3")
def test_users_domains_outlive_writes_and_the_protocols_are_not_shown() -> None:
    log = create(MemoryFile("f"), enableRowTracking="true")
    set_domain_metadata(log.table, "app", "1", log, POLICY)
    write(log, MemoryFile("g"))
    assert user_domains(log.table, log) == {"app": "1"}
    snapshot = log.snapshot(log.table)
    assert snapshot is not None and set(snapshot.domains) == {"app", "delta.rowTracking"}
