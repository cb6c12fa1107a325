package io.deltaic.spark.scan.files

import org.apache.hadoop.fs.Path

class LocalCommitsSuite extends munit.FunSuite {

  test(
    "a commit is newer than what was loaded before it, not than its own version or a later one"
  ) {
    val table = new Path("/grown")
    val loaded = LocalCommits.at(table, 4)
    assert(!LocalCommits.of(table).isNewerThan(loaded))
    LocalCommits.add(table, 5)
    assert(LocalCommits.of(table).isNewerThan(loaded))
    assert(!LocalCommits.of(table).isNewerThan(LocalCommits.at(table, 5)))
    assert(!LocalCommits.of(table).isNewerThan(LocalCommits.at(table, 6)))
  }

  test("the newest commit stays if older ones are added later") {
    val table = new Path("/raced")
    Seq(3L, 5L, 4L).foreach(LocalCommits.add(table, _))
    assertEquals(LocalCommits.of(table).version, 5L)
  }

  test("a table that is created again is newer than all versions of the one before") {
    val table = new Path("/created-again")
    Seq(0L, 1L, 2L).foreach(LocalCommits.add(table, _))
    val loaded = LocalCommits.at(table, 2)
    LocalCommits.add(table, 0)
    assert(LocalCommits.of(table).isNewerThan(loaded))
    assert(!LocalCommits.of(table).isNewerThan(LocalCommits.at(table, 0)))
    LocalCommits.add(table, 1)
    assert(LocalCommits.of(table).isNewerThan(LocalCommits.at(table, 0)))
    assert(!LocalCommits.of(table).isNewerThan(LocalCommits.at(table, 1)))
  }

  test("data cached from a table is that of the newest commit it was refreshed for") {
    val table = new Path("/cached")
    val cached = new CachedVersions(LocalCommits.at(table, 1))
    LocalCommits.add(table, 2)
    assert(cached.areBefore(LocalCommits.of(table)))
    val newer = new CachedVersions(LocalCommits.at(table, 2))
    assert(!newer.meet(cached))
    assert(newer.joinedTo(cached) eq cached)
    assert(newer.meet(cached) && !cached.areBefore(LocalCommits.of(table)))
  }
}
