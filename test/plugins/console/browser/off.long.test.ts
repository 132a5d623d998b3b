// See off.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('off.js', import.meta.url))
