// What each mode lets a hostile guest do: see modes.ts.
import { runIsolated } from '../../helpers/isolated.ts'

await runIsolated(new URL('modes.js', import.meta.url))
