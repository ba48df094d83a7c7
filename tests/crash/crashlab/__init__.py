"""The crash suite's tools: record file writes, replay them as a power loss leaves them.

`ptrace.py` the kernel calls · `tracer.py` every syscall of a child, with faults injected ·
`events.py` what reached the disk, in order · `recorder.py` syscalls → events · `disk.py` events →
the images a power loss may leave · `plan.py` what the writer does and what must then be there ·
`worker.py` the writer process · `judge.py` is this image a good one?
"""
