// See with-egress.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('with-egress.js', import.meta.url))
