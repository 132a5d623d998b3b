// `berth volume create`
import { wrongUsage } from '../failure.ts'
import { contentOf } from '../local-file.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Volume } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const archive = input.text('fromArchive')
  const size = input.number('size')
  if (size === undefined) throw wrongUsage('--size is needed')
  const given = { name: input.argument(0), size_gb: size, id: input.text('id') }
  if (archive === undefined) return await printMade(session, await api.call<Volume>('POST', '/volumes', { body: { ...given, tags: input.pairs('tag') } }))
  const content = archive === '-' ? process.stdin : await contentOf(archive)
  return await printMade(session, await api.call<Volume>('POST', '/volumes/from-archive', { query: { ...given, tags: input.pairs('tag') }, upload: { content, headers: { 'content-type': 'application/gzip' } } }))
}
