"""The daemon's end of the control channel: repeats, limits and strangers, on both loops."""

import pytest

from mrcfabric.control import ControlClient, ControlLimits, ControlServer, Realm
from mrcfabric.control_message import MAC_BYTES, seal
from mrcfabric.errors import ConfigError, RefusedError
from tests.support.control import LOOPBACK, REALM, CountingOps, peer_of, request_of, serving
from tests.support.loops import Run, run
from tests.support.wait import eventually

__all__ = ["run"]


def test_a_repeated_request_runs_once(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, peer_of(server) as peer:
            datagram = request_of("wait", (7, 1))
            peer.send(datagram)
            assert (await peer.ask(datagram))["status"] == "pending"
            ops.gate.set()
            assert (await peer.answer())["status"] == "ok"
            assert (await peer.ask(datagram))["status"] == "ok"
            assert ops.calls == 1
            assert server.duplicates == 2

    run(body())


def test_a_forgotten_request_is_refused_not_run_again(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        limits = ControlLimits(answers_max=2)
        async with serving(ops, limits=limits) as server, peer_of(server) as peer:
            for sequence in range(4):
                args = {"a": sequence, "b": 0}
                assert (await peer.ask(request_of("add", (7, sequence), args)))["status"] == "ok"
            answer = await peer.ask(request_of("add", (7, 0), {"a": 0, "b": 0}))
            assert answer["status"] == "refused"
            assert (await peer.ask(request_of("add", (8, 0), page=1)))["status"] == "refused"
            assert ops.calls == 4

    run(body())


def test_an_answer_that_nobody_asks_for_any_more_takes_no_room(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        limits = ControlLimits(answer_wall_s=0.0)
        async with serving(ops, limits=limits) as server, peer_of(server) as peer:
            for sequence in range(4):
                assert (await peer.ask(request_of("long", (7, sequence), {"kb": 20})))["status"] == "ok"
                assert 20_000 < server.kept_bytes < 30_000, "that of the newest answer alone"
            again = await peer.ask(request_of("long", (7, 2), {"kb": 20}))
            assert again["status"] == "refused"
            assert b"too old" in again["body"]
            assert ops.calls == 4, "it was not carried out once more"

    run(body())


def test_a_channel_that_is_cut_carries_nothing_and_afterwards_all(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        cut = False
        async with serving(ops, cut_off=lambda: cut) as server, peer_of(server) as peer:
            before, during = request_of("wait", (7, 1)), request_of("add", (7, 2), {"a": 2, "b": 3})
            peer.send(before)
            assert (await peer.ask(before))["status"] == "pending"
            cut = True
            ops.gate.set()  # carried out, but nobody hears of it
            for count in (1, 2):
                peer.send(during)
                await eventually(lambda wanted=count: server.drops == {"cut_off": wanted}, deadline_s=20)
            cut = False
            assert (await peer.ask(before))["status"] == "ok"
            assert (await peer.ask(during))["status"] == "ok"
            assert ops.calls == 2

    run(body())


def test_too_many_requests_at_once_are_refused(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        limits = ControlLimits(pending_max=1)
        async with serving(ops, limits=limits) as server, peer_of(server) as peer:
            peer.send(request_of("wait", (7, 1)))
            answer = await peer.ask(request_of("wait", (7, 2)))
            assert answer["status"] == "refused"
            assert b"busy" in answer["body"]

    run(body())


def test_another_incarnation_and_another_version_are_refused(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops, incarnation=2) as server:
            async with ControlClient(server.address, REALM, incarnation=1) as client:
                with pytest.raises(RefusedError, match="incarnation 1 is gone, this is 2"):
                    await client.call("add", {"a": 1, "b": 1})
            async with ControlClient(server.address, REALM, incarnation=2) as client:
                assert await client.call("add", {"a": 1, "b": 1}) == 2
            async with peer_of(server) as peer:
                answer = await peer.ask(request_of("add", (7, 1), v=99))
                assert b"version 1" in answer["body"]

    run(body())


def test_strangers_are_dropped_and_counted(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, peer_of(server) as peer:
            good = request_of("add", (7, 1), {"a": 1, "b": 1})
            peer.send(b"short")
            peer.send(good[:-1])
            peer.send(bytes(MAC_BYTES) + good[MAC_BYTES:])
            peer.send(seal({"v": 1}, b"another secret!!"))
            peer.send(request_of("add", (7, 1), fabric="other"))
            peer.send(request_of("add", (7, 1), epoch=2))
            peer.send(request_of("add", (7, 1), op=5))
            peer.send(request_of("add", (7, 1), page=-1))
            peer.send(request_of("add", (7, 1), id=[1]))
            assert (await peer.ask(good))["status"] == "ok"
            drops = {"short": 1, "bad_mac": 3, "other_fabric": 2, "malformed": 3}
            assert server.counters()["drops"] == drops
            assert ops.calls == 1

    run(body())


def test_what_was_recorded_is_worth_nothing_to_whoever_repeats_it(run: Run) -> None:
    """The same again from elsewhere, later, to another daemon, to the next life of this one, in another launch."""

    async def body() -> None:
        ops, limits = CountingOps(), ControlLimits(answers_max=1, clients_max=1)
        recorded = request_of("add", (7, 1), {"a": 1, "b": 1}, incarnation=0)
        async with serving(ops, limits=limits) as server, peer_of(server) as peer, peer_of(server) as thief:
            assert (await peer.ask(recorded))["status"] == "ok"
            thief.send(recorded)
            await eventually(lambda: server.drops == {"other_asker": 1}, deadline_s=20)
            assert (await peer.ask(request_of("add", (7, 2), {"a": 1, "b": 1})))["status"] == "ok"
            assert b"too old" in (await thief.ask(recorded))["body"]
            # Nobody is forgotten to make room for others, who could then be its recordings.
            assert b"1 others have asked" in (await thief.ask(request_of("add", (8, 1))))["body"]
            assert ops.calls == 2
        others = (REALM.of("h001"), Realm(REALM.secret, REALM.fabric, REALM.epoch + 1), Realm(bytes(16), REALM.fabric))
        for realm, reason in zip(others, ("bad_mac", "other_fabric", "bad_mac"), strict=True):
            async with serving(ops, realm=realm) as server, peer_of(server) as peer:
                peer.send(recorded)
                await eventually(lambda of=server, why=reason: of.drops == {why: 1}, deadline_s=20)
        async with serving(ops, incarnation=1) as server, peer_of(server) as peer:
            assert b"incarnation 0 is gone" in (await peer.ask(recorded))["body"]
        assert ops.calls == 2
        assert REALM.of("h001") == REALM.of("h001") != REALM.of("h002")

    run(body())


def test_an_address_in_use_is_the_operators_mistake(run: Run) -> None:
    async def body() -> None:
        async with serving(CountingOps()) as server:
            with pytest.raises(ConfigError, match=r"control 127.0.0.1:"):
                await ControlServer(server.address, REALM, {}).open()

    run(body())


def test_our_own_mistake_in_an_op_is_not_hidden(run: Run) -> None:
    async def broken(_args: dict[str, object]) -> None:
        raise KeyError("ours")

    async def body() -> None:
        server = ControlServer(LOOPBACK, REALM, {"broken": broken})
        await server.open()
        async with peer_of(server) as peer:
            peer.send(request_of("broken", (7, 1)))
            with pytest.raises(ExceptionGroup) as caught:
                await server.serve()
        assert isinstance(caught.value.exceptions[0], KeyError)

    run(body())
