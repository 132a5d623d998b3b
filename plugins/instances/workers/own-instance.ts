// Instances that work for a plugin hold what only that plugin may see, such as the secrets of a build: a caller may see and delete them, and nothing else.
import { WorkerInstance } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'

export function requireOwn (call: string, { name, record: { spec } }: LiveInstance): void {
  if (spec.worker !== undefined) throw WorkerInstance(call, name, spec.worker)
}
