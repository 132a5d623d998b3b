// `berth ingress rm`
import { path } from '../api/path.ts'
import { deleteEach } from '../output/delete.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => await deleteEach(session, input.many(0), (name) => path`/ingresses/${name}`)
