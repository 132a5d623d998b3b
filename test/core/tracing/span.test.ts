import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { currentSpan, exitEnded, traced, withSpan, type Span } from '../../../core/tracing/span.ts'

function newSpan (traceId: string): Span & { ended: boolean } {
  return {
    traceId,
    ended: false,
    child: (name) => newSpan(`${traceId}/${name}`),
    set () {},
    fail () {},
    end () { this.ended = true }
  }
}

t.test('code runs in its span across awaits, until the span has ended', async (t) => {
  const span = newSpan('one')
  await withSpan(span, async () => {
    await sleep(1)
    t.equal(currentSpan(), span)
    t.equal(await traced('child', {}, async () => currentSpan()?.traceId), 'one/child')
    withSpan(undefined, () => { t.equal(currentSpan(), undefined) })
    span.end()
    t.equal(currentSpan(), undefined)
  })
})

t.test('contexts stay while one span of several has not ended, and a later span has one again', async (t) => {
  const [first, second] = [newSpan('first'), newSpan('second')]
  const seen: (string | undefined)[] = []
  const look = async (): Promise<void> => {
    await sleep(20)
    seen.push(currentSpan()?.traceId)
  }
  const looks = [withSpan(first, look), withSpan(second, look)]
  first.end()
  exitEnded()
  await Promise.all(looks)
  t.strictSame(seen, [undefined, 'second'])
  const late = withSpan(second, look)
  second.end()
  exitEnded()
  exitEnded()
  await late
  t.equal(seen.at(-1), undefined)
  const third = newSpan('third')
  t.equal(await withSpan(third, async () => await sleep(1).then(() => currentSpan()?.traceId)), 'third')
  third.end()
})

t.test('a span that does not end holds none of those that ended after it', async (t) => {
  const look = async (): Promise<string | undefined> => await sleep(20).then(() => currentSpan()?.traceId)
  const long = newSpan('long')
  const lasting = withSpan(long, look)
  let reads = 0
  for (let n = 0; n < 100; n++) withSpan(Object.defineProperty(newSpan('short'), 'ended', { get: () => { reads++; return true } }), () => {})
  exitEnded()
  reads = 0
  t.equal(await lasting, 'long', 'its own context stays')
  long.end()
  exitEnded()
  t.equal(reads, 0, 'they were let go of before')
})
