// `berth host log`
import { parseJson } from '../api/json.ts'
import { events } from '../api/sse.ts'
import { clean, cleanJson } from '../../core/clean-text.ts'
import { writeAll } from '../output/write.ts'
import type { Run } from '../spec.ts'
import type { HostLog, HostLogLine } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const query = { limit: input.integer('tail'), level: input.text('level') }
  if (!input.flag('follow')) {
    const answer = await api.call<HostLog>('GET', '/host/log', { query: { ...query, since: input.text('since') } })
    if (session.format !== 'table') await session.print(answer)
    else for (const line of answer.entries) session.line(textOf(line))
    return 0
  }
  for await (const { event, data } of events(await api.stream('GET', '/host/log/stream', { query }), api.target)) {
    if (event === 'missed') session.say(`lines that came too fast are missing: ${parseJson<{ readonly lines: number }>(data).lines}`)
    else await writeAll(process.stdout, session.format === 'table' ? `${textOf(parseJson(data))}\n` : `${cleanJson(data)}\n`)
  }
  return 0
}

function textOf ({ time, level, message, fields: { plugin, pid: _pid, ...fields } }: HostLogLine): string {
  const facts = Object.entries(fields).map(([key, value]) => `${key}=${typeof value === 'string' && /^[\w.:/@-]+$/.test(value) ? value : JSON.stringify(value)}`)
  return clean([time, level.padEnd(5), ...typeof plugin === 'string' ? [`[${plugin}]`] : [], message, ...facts].join(' '))
}
