// Deletes the named things; on a terminal it asks first.
import { forEach } from './results.ts'
import type { Session } from '../session.ts'
import { confirmed } from '../terminal/ask.ts'

export async function deleteEach (session: Session, names: readonly string[], pathOf: (name: string) => string): Promise<number> {
  const api = await session.api()
  if (!await confirmed(session, `Delete ${names.join(', ')}?`)) return 0
  return await forEach(session, names, async (name) => await api.call('DELETE', pathOf(name)))
}
