// A receiver of OTLP that others wrote (oteltap, from PyPI): it decodes by the published messages of OpenTelemetry and prints each span as a line of JSON.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import type { Collector, ReceivedSpan } from './otlp.ts'

const FOLDER = join(packageRoot, '.cache/oteltap')
const PYTHON = join(FOLDER, 'bin/python')
const MINUTE_MS = 60_000

/** Kept in the cache of this project. */
export async function installReceiver (): Promise<void> {
  const commands = createHostCommands()
  if (existsSync(PYTHON) && await commands.run(PYTHON, ['-c', 'import oteltap']).then(() => true, () => false)) return
  await commands.run('python3', ['-m', 'venv', '--clear', FOLDER], { timeoutMs: 2 * MINUTE_MS })
  await commands.run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'oteltap==1.0.0'], { timeoutMs: 5 * MINUTE_MS })
}

interface Attribute { readonly key: string, readonly value: Readonly<Record<string, unknown>> }
interface PrintedSpan { readonly traceId: string, readonly spanId: string, readonly parentSpanId: string, readonly name: string, readonly kind: number, readonly startTimeUnixNano: string, readonly endTimeUnixNano: string, readonly attributes: readonly Attribute[], readonly status?: { readonly code?: number } }

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const

export async function startReceiver (t: Test): Promise<Pick<Collector, 'endpoint' | 'spans'>> {
  const port = await freePort('127.0.0.1')
  const child = spawn(PYTHON, ['-u', '-m', 'oteltap', '--port', String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  })
  const spans: ReceivedSpan[] = []
  let isListening = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('Listening')) isListening = true
    else if (line.startsWith('{"traceId"')) spans.push(spanOf(JSON.parse(line) as PrintedSpan))
  })
  await eventually('the receiver listens', () => isListening)
  return { endpoint: `http://127.0.0.1:${port}/v1/traces`, spans: () => spans.toSorted((a, b) => a.startMs - b.startMs) }
}

function spanOf ({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, status }: PrintedSpan): ReceivedSpan {
  const ms = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1000n) / 1000
  return {
    trace: traceId, id: spanId, parent: parentSpanId, name, kind: KINDS[kind] ?? '', failed: status?.code === 2, startMs: ms(startTimeUnixNano), endMs: ms(endTimeUnixNano),
    attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])), resource: {}
  }
}
