// What programs in a real machine do through the proxy, against real origins outside: see clients.ts.
import { runIsolated } from '../../helpers/isolated.ts'
import { fetchImages } from './image.ts'

await runIsolated(new URL('clients.js', import.meta.url), fetchImages)
