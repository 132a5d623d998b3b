// The driver for macOS keeps the contract against a protocol double of vfkit, which judges its arguments and requests. That proves nothing about vfkit.
import t from 'tap'
import { conformanceOnDouble } from '../../vmm-double/driver.ts'
import { double } from './double.ts'

await conformanceOnDouble(t, new URL('double.js', import.meta.url), double)
