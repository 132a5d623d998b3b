// See with-builds.ts. The image of builders is made where there is a network.
import { fetchBuilder } from '../../../../integration/builds/egress-images.ts'
import { runIsolated } from '../../../../helpers/isolated.ts'

await runIsolated(new URL('with-builds.js', import.meta.url), fetchBuilder)
