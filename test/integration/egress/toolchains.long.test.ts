// What runtimes and toolchains with a trust of their own do in a real machine through the proxy: see toolchains.ts.
import { runIsolated } from '../../helpers/isolated.ts'
import { fetchToolchains } from './toolchains-image.ts'

await runIsolated(new URL('toolchains.js', import.meta.url), fetchToolchains)
