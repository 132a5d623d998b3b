// What is read of the metrics while some of them cannot be told.
import t from 'tap'
import { Counter, Gauge, Registry } from 'prom-client'
import { startMetricsListener } from '../../../core/http/metrics-listener.ts'
import { deferred } from '../../../core/jobs/deferred.ts'
import { createLog } from '../../../core/logging/log.ts'

t.test('metrics that cannot be told are left out, and keep nobody from the others; that is logged once, until they are told again', async (t) => {
  const registry = new Registry()
  const registers = [registry]
  const answer = deferred<number>()
  let isAway = true
  let asked = 0
  new Counter({ name: 'first_total', help: 'Things.', registers }).inc()
  registry.registerMetric(new Gauge({
    name: 'failing',
    help: 'Things that a database knows.',
    registers: [],
    collect () {
      if (isAway) throw new Error('the database does not answer')
      this.set(2)
    }
  }))
  registry.registerMetric(new Gauge({
    name: 'silent',
    help: 'Things that somebody else knows.',
    registers: [],
    async collect () {
      asked++
      this.set(await answer.promise)
    }
  }))
  new Gauge({ name: 'last', help: 'Things.', registers }).set(4)
  const lines: Record<string, unknown>[] = []
  const listener = await startMetricsListener({ listen: '127.0.0.1:0' }, registry, createLog({ level: 'info', destination: { write: (line) => { lines.push(JSON.parse(line)) } } }))
  t.teardown(async () => { await listener.close() })
  const read = async (): Promise<{ status: number, type: string | null, text: string }> => {
    const response = await fetch(`http://127.0.0.1:${listener.port}/metrics`, { signal: AbortSignal.timeout(10_000) })
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
  }
  const others = { status: 200, type: registry.contentType, text: '# HELP first_total Things.\n# TYPE first_total counter\nfirst_total 1\n\n# HELP last Things.\n# TYPE last gauge\nlast 4\n' }
  t.same(await Promise.all([read(), read()]), [others, others])
  t.equal(asked, 1, 'who has not answered yet is not asked again')
  t.match(lines, [{ level: 'warn', metrics: ['failing', 'silent'], err: { message: 'the database does not answer' } }])
  isAway = false
  answer.resolve(3)
  const all = await read()
  t.same(all, { status: 200, type: registry.contentType, text: await registry.metrics() })
  t.match(all.text, /first_total 1\n.*failing 2\n.*silent 3\n.*last 4\n$/s)
  t.match(lines.slice(1), [{ level: 'info', metrics: ['failing', 'silent'] }])
  await read()
  isAway = true
  t.notMatch((await read()).text, 'failing')
  t.match(lines.slice(2), [{ level: 'warn', metrics: ['failing'] }])
})
