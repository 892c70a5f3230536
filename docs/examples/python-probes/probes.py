#!/usr/bin/env python3
"""A ProbeManager in Python, from proto/bosun/manager/v1/manager.proto alone: probes by commands and over TCP.

`probes.py --at unix:///run/acme/probes.sock`, and a node with `--manager probes=unix:///run/acme/probes.sock`. It needs grpcio with
grpcio-tools, or Debian's python3-grpcio with python3-protobuf and protobuf-compiler. docs/replace-a-manager.md tells of it;
`cargo xtask conform probes --python` tries it.
"""

import argparse
import asyncio
import datetime
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc

PROTO = "bosun/manager/v1/manager.proto"
PROTOS = Path(__file__).resolve().parents[3] / "proto"

# What the role declares, as a digest: `cargo xtask conform probes --list` says it. A node talks to no manager with another one.
CONTRACT = "fb42a2ad3039ddc256f1ca9cc0928c8e"
# Frames that may wait for the node.
WAITING = 4096
# Attempts while a probe ends in an error.
ATTEMPTS = 3
# A container that has run for longer before this program began keeps what it had, in seconds.
ADOPTED_AFTER = 10
BEGAN = time.time()
FIRST = {"Startup": "Unknown", "Readiness": "Failure", "Liveness": "Success"}
FIELDS = {"Startup": "startupProbe", "Readiness": "readinessProbe", "Liveness": "livenessProbe"}


def messages():
    """The messages of the proto: by grpcio-tools, or by protoc where these are not there or too old."""
    sys.path.insert(0, str(PROTOS))
    try:
        return grpc.protos(PROTO)
    except NotImplementedError:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["protoc", f"-I{PROTOS}", f"--python_out={folder}", PROTO], check=True)
            sys.path.insert(0, folder)
            return importlib.import_module("bosun.manager.v1.manager_pb2")


pb = messages()


class Probe:
    """One probe of one container: a task that looks once per period."""

    def __init__(self, life, pod, container, kind, spec, is_sidecar, former):
        self.life, self.pod, self.container, self.kind, self.spec = life, pod, container, kind, spec
        self.is_sidecar, self.former = is_sidecar, former
        self.instance = self.verdict = None
        self.holds, self.run, self.has_ended = False, (None, 0), False
        self.task = asyncio.create_task(self.carry_out())

    def end(self):
        # A task that has just been answered may miss that it is cancelled.
        self.has_ended = True
        self.task.cancel()

    def number(self, field, otherwise):
        value = self.spec.get(field) or 0
        return value if value > 0 else otherwise

    async def carry_out(self):
        period, clock = self.number("periodSeconds", 10), asyncio.get_running_loop().time
        due = clock()
        while not await self.tick():
            # A tick that came while the probe ran is made up for once.
            due = max(due + period, clock())
            await asyncio.sleep(due - clock())
        if not self.has_ended:
            self.life.drop(self)

    async def tick(self):
        """Decides and probes (pod-lifecycle 8.2). True: it is over."""
        entry = self.life.statuses.get(uid_of(self.pod))
        if entry is None:
            return False
        status = entry["status"]
        if status.get("phase") in ("Succeeded", "Failed"):
            return True
        seen = self.seen(status)
        if seen is None:
            return False
        instance, state = seen["containerID"].split("://")[-1], seen.get("state") or {}
        started_at = seconds_of((state.get("running") or {}).get("startedAt"))
        if instance != self.instance:
            self.adopt(instance, started_at)
        if self.holds:
            return False
        if not state.get("running"):
            if not state.get("terminated"):
                return False
            self.decide("Failure")
            return not self.restarts(state["terminated"].get("exitCode", 0))
        if self.kind != "Readiness" and self.pod["metadata"].get("deletionTimestamp"):
            return True
        if 0 <= time.time() - started_at < self.number("initialDelaySeconds", 0):
            return False
        if bool(seen.get("started")) == (self.kind == "Startup"):
            return False
        outcome, output = await self.attempts(instance, status.get("podIP", ""))
        if self.has_ended:
            return True
        now = self.life.statuses.get(uid_of(self.pod))
        seen = now and self.seen(now["status"])
        # What was found of an instance that is gone says nothing of the next.
        if seen and seen["containerID"].endswith(instance):
            self.count(outcome, output)
        return False

    def seen(self, status):
        both = (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or [])
        return next((s for s in both if s["name"] == self.container["name"] and s.get("containerID")), None)

    def restarts(self, exit_code):
        policy = self.pod["spec"].get("restartPolicy") or "Always"
        return self.is_sidecar or policy == "Always" or (policy == "OnFailure" and exit_code != 0)

    def adopt(self, instance, started_at):
        """A new instance: the old verdict goes. One that a manager before this one knew goes on with what it had."""
        self.instance, self.holds, self.run, self.verdict = instance, False, (None, 0), None
        known = ((self.former or {}).get("verdicts", {}).get(instance) or {}).get(self.kind)
        if known is None and started_at and BEGAN - started_at > ADOPTED_AFTER:
            return self.life.post(self.pod)
        self.decide(known or FIRST[self.kind])

    def decide(self, verdict):
        self.verdict = verdict
        self.holds = (self.kind, verdict) in (("Liveness", "Failure"), ("Startup", "Failure"), ("Startup", "Success"))
        self.life.post(self.pod)

    def count(self, outcome, output):
        if outcome != "success":
            words = "failed" if outcome == "failure" else "errored and resulted in unknown state"
            self.life.event(self.pod, self.container, self.is_sidecar, f"{self.kind} probe {words}: {output}")
        if outcome == "error":
            return
        last, n = self.run
        self.run = (outcome, n + 1 if last == outcome else 1)
        is_good = outcome == "success"
        if self.run[1] >= self.number("successThreshold" if is_good else "failureThreshold", 1 if is_good else 3):
            self.decide("Success" if is_good else "Failure")

    async def attempts(self, instance, address):
        for _ in range(ATTEMPTS):
            if self.spec.get("exec"):
                found = await self.run_command(instance)
            elif self.spec.get("tcpSocket"):
                found = await self.dial(address)
            else:
                return "error", "this manager knows probes by commands and over TCP"
            if found[0] != "error":
                break
        return found

    async def run_command(self, instance):
        timeout = self.number("timeoutSeconds", 1)
        message = {
            "uid": uid_of(self.pod),
            "container": instance,
            "command": self.spec["exec"].get("command") or [],
            "timeout": {"secs": timeout, "nanos": 0},
        }
        answer = await self.life.ask("ExecSync", message, timeout + 30)
        if answer is None:
            return "error", "the node did not answer"
        if "Err" in answer:
            is_late = answer["Err"]["kind"] == "Timeout"
            return ("failure", "command timed out") if is_late else ("error", answer["Err"]["message"])
        done = answer["Ok"]
        output = bytes(done["stdout"] + done["stderr"])[: 10 * 1024].decode(errors="replace")
        return "success" if done["exit_code"] == 0 else "failure", output

    async def dial(self, address):
        to = self.spec["tcpSocket"]
        ports = {p.get("name"): p["containerPort"] for p in self.container.get("ports") or []}
        try:
            port = int(ports.get(to["port"], to["port"]))
        except ValueError:
            return "error", f"couldn't find port {to['port']}"
        try:
            connecting = asyncio.open_connection(to.get("host") or address, port)
            _, writer = await asyncio.wait_for(connecting, self.number("timeoutSeconds", 1))
            writer.close()
            return "success", ""
        except (OSError, asyncio.TimeoutError) as why:
            return "failure", f"dial tcp {address}:{port}: {why or 'i/o timeout'}"


class Life:
    """One life of the manager: from the node that attaches until it is gone."""

    def __init__(self):
        self.out = asyncio.Queue(WAITING)
        self.boards = {"StatusEntry": {}, "PodProbes": {}}
        self.statuses, self.rows = self.boards["StatusEntry"], self.boards["PodProbes"]
        self.unfinished, self.probes, self.waiting = set(), {}, {}
        self.calls = self.changes = 0

    def say(self, **what):
        # One queue is one order: a row is there before the answer that was given after it. Too full: the life ends.
        self.out.put_nowait(pb.FromManager(**what))

    async def hear(self, frames):
        try:
            async for frame in frames:
                kind = frame.WhichOneof("what")
                if kind == "begin" and frame.begin.hash != CONTRACT:
                    print(f"a node with another contract, {frame.begin.hash}", file=sys.stderr)
                    return
                handler = getattr(self, f"on_{kind}", None)
                if handler:
                    handler(getattr(frame, kind))
        finally:
            self.end()

    def end(self):
        for probes in self.probes.values():
            for probe in probes:
                probe.end()
        self.probes = {}
        while self.out.full():
            self.out.get_nowait()
        self.out.put_nowait(None)

    def on_rows(self, rows):
        board = self.boards.get(rows.board)
        if board is None:
            return
        if rows.whole and rows.board not in self.unfinished:
            board.clear()
        (self.unfinished.add if rows.more else self.unfinished.discard)(rows.board)
        for row in rows.rows:
            if row.HasField("value"):
                board[json.loads(row.key)] = json.loads(row.value)
            else:
                board.pop(json.loads(row.key), None)

    def on_start(self, _):
        self.say(ready=pb.Ready())

    def on_ping(self, ping):
        self.say(pong=pb.Pong(number=ping.number))

    def on_answer(self, answer):
        waiting = self.waiting.pop(answer.id, None)
        if waiting and not waiting.done():
            waiting.set_result(json.loads(answer.body) if answer.WhichOneof("what") == "body" else None)

    def on_call(self, call):
        known = {"StartProbes": self.start, "StopProbes": self.stop, "RetainProbes": self.retain}.get(call.message)
        if known:
            known(json.loads(call.body))
        if not call.id:
            return
        if known:
            self.say(answer=pb.Answer(id=call.id, body=b"null"))
        else:
            self.say(answer=pb.Answer(id=call.id, unanswered=pb.UNANSWERED_REFUSED))

    def start(self, message):
        pod = message["pod"]
        uid = uid_of(pod)
        if uid in self.probes:
            return
        former, probes = self.rows.get(uid), []
        sidecars = [c for c in pod["spec"].get("initContainers") or [] if c.get("restartPolicy") == "Always"]
        for container in sidecars + pod["spec"]["containers"]:
            for kind, field in FIELDS.items():
                # What is probed is the pod's, whatever the manager before this one has posted.
                if container.get(field):
                    is_sidecar = container in sidecars
                    probes.append(Probe(self, pod, container, kind, container[field], is_sidecar, former))
        if probes:
            self.probes[uid] = probes
            if former:
                # Until each has looked, what the manager before this one had found stands.
                return
            self.post(pod)

    def stop(self, message):
        if not message["keep_readiness"]:
            return self.forget(message["uid"])
        for probe in list(self.probes.get(message["uid"], [])):
            if probe.kind != "Readiness" and not probe.is_sidecar:
                probe.end()
                self.drop(probe)

    def retain(self, message):
        known = set(message["known"])
        for uid in (set(self.probes) | set(self.rows)) - known:
            self.forget(uid)

    def forget(self, uid):
        for probe in self.probes.pop(uid, []):
            probe.end()
        if self.rows.pop(uid, None) is not None:
            self.say_row(uid, None)

    def drop(self, probe):
        probes = self.probes.get(uid_of(probe.pod), [])
        if probe in probes:
            probes.remove(probe)
            self.post(probe.pod)

    def post(self, pod):
        """The row of a pod, if it says something new."""
        uid, row = uid_of(pod), {"verdicts": {}, "probes": {}}
        for probe in self.probes.get(uid, []):
            row["probes"].setdefault(probe.container["name"], []).append(probe.kind)
            if probe.instance is None and probe.former:
                found = self.former_of(probe)
                instance, verdict = found if found else (None, None)
            else:
                instance, verdict = probe.instance, probe.verdict
            if verdict:
                row["verdicts"].setdefault(instance, {})[probe.kind] = verdict
        if self.rows.get(uid) != row:
            self.rows[uid] = row
            self.say_row(uid, row)

    def former_of(self, probe):
        """What the manager before this one had found of the instance that a probe will look at."""
        seen = probe.seen((self.statuses.get(uid_of(probe.pod)) or {"status": {}})["status"])
        instance = seen and seen["containerID"].split("://")[-1]
        verdict = (probe.former["verdicts"].get(instance) or {}).get(probe.kind)
        return (instance, verdict) if verdict else None

    def say_row(self, uid, row):
        self.changes += 1
        told = pb.Row(key=json.dumps(uid).encode())
        if row is not None:
            told.value = json.dumps(row).encode()
        self.say(rows=pb.Rows(board="PodProbes", number=self.changes, rows=[told]))

    async def ask(self, message, body, within):
        self.calls += 1
        number, answer = self.calls, asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        body = json.dumps(body).encode()
        self.say(call=pb.Call(id=number, message=message, body=body, within_ms=within * 1000))
        try:
            return await asyncio.wait_for(answer, within)
        except asyncio.TimeoutError:
            return None
        finally:
            self.waiting.pop(number, None)

    def event(self, pod, container, is_sidecar, message):
        meta, kind = pod["metadata"], "initContainers" if is_sidecar else "containers"
        of = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        of["field_path"] = f"spec.{kind}{{{container['name']}}}"
        event = {"kind": "Warning", "reason": "Unhealthy", "message": message, "object": {"Pod": of}}
        self.say(call=pb.Call(message="RecordEvent", body=json.dumps({"event": event, "annotations": {}}).encode()))


class Manager:
    """Says who is here, and serves the latest node that comes."""

    life = None

    def handlers(self):
        describe, serve = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        methods = {
            "Describe": describe(self.describe, pb.DescribeRequest.FromString, pb.Description.SerializeToString),
            "Serve": serve(self.serve, pb.ToManager.FromString, pb.FromManager.SerializeToString),
        }
        return grpc.method_handlers_generic_handler("bosun.manager.v1.Manager", methods)

    async def describe(self, request, context):
        return pb.Description(role="ProbeManager", hash=CONTRACT, version="0.1.0", program="python-probes")

    async def serve(self, frames, context):
        if self.life:
            self.life.end()
        life = self.life = Life()
        # The node says nothing before it has the head of the answer, which grpcio would send with the first frame.
        await context.send_initial_metadata(())
        hearing = asyncio.create_task(life.hear(frames))
        try:
            while (frame := await life.out.get()) is not None:
                yield frame
        finally:
            hearing.cancel()
            life.end()


def uid_of(pod):
    return pod["metadata"]["uid"]


def seconds_of(text):
    """Seconds since 1970 of a time as the API writes it; 0: there is none."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0


async def main():
    words = argparse.ArgumentParser(description="A ProbeManager: probes by commands and over TCP.")
    words.add_argument("--at", required=True, metavar="unix:///PATH")
    at = words.parse_args().at
    if not at.startswith("unix:///"):
        words.error(f"--at: {at!r} is no address (allowed: unix:///PATH)")
    path = Path(at.removeprefix("unix://"))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.umask(0o077)
    size = [("grpc.max_receive_message_length", 4 << 20), ("grpc.max_send_message_length", 4 << 20)]
    server = grpc.aio.server(options=size)
    server.add_generic_rpc_handlers((Manager().handlers(),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
