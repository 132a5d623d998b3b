// The steps that are run in each system, one after the other.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { cacheFolder, systemRoot } from './root.ts'
import { SUITES, type SuiteName } from './suites.ts'

const ENTER = join(packageRoot, 'setup/systems/enter.sh')

export type Step = 'versions' | 'quickstart' | 'journey' | 'tests' | 'conformance'

/** Tests without VMs whose result depends on the system: its apt, kernel packages, tools for images and networks. */
const TESTS = ['plugins/guest/system', 'plugins/builds/builder-image', 'plugins/images', 'plugins/registry', 'core/process']
const VERSIONS = `sh setup/install-host-packages.sh server network
. /etc/os-release; echo "$PRETTY_NAME"; echo "node $(node --version)"
dpkg-query --show --showformat='\${Package} \${Version}\\n' qemu-system-x86 skopeo umoci erofs-utils nftables iproute2 dnsmasq-base docker-registry 2> /dev/null
apt-cache show --no-all-versions linux-image-cloud-amd64 | grep ^Version: | sed 's/^Version:/kernel of the guests/'; true`

/** Quickstart with another Node than the one that installed this checkout's packages installs what the server needs, and no more. */
const PREPARE = 'sh setup/prepare.sh server network quickstart systems'

const COMMANDS: Readonly<Record<Step, readonly string[]>> = {
  versions: ['sh', '-c', VERSIONS],
  quickstart: ['npm', 'run', '--silent', 'quickstart'],
  // It has a network, which quickstart can do without, and origins outside, one of which serves git.
  journey: ['sh', '-c', `${PREPARE} && apt-get -q -y install git > /dev/null && exec node --enable-source-maps dist/test/integration/journey.test.js`],
  conformance: ['sh', '-c', `${PREPARE} && exec node --enable-source-maps dist/test/plugins/hypervisor-qemu/conformance.js`],
  tests: ['sh', '-c', `${PREPARE}
failed=''
for file in $(cd dist/test && find ${TESTS.join(' ')} -name '*.test.js' ! -name '*.long.test.js' | sort); do
  if node --enable-source-maps "dist/test/$file" > /tmp/test.log 2>&1; then echo "ok $file"; else echo "not ok $file"; tail -n 60 /tmp/test.log; failed="$failed $file"; fi
done
[ -z "$failed" ]`]
}

export interface SystemRun {
  readonly suite: SuiteName
  readonly steps: readonly Step[]
  /** gets each line that a step prints */
  say (line: string): void
  readonly signal?: AbortSignal
}

/** Resolves to the steps that failed. Throws when the system cannot be made. */
export async function runSystem ({ suite, steps, say, signal }: SystemRun): Promise<readonly Step[]> {
  const root = await systemRoot(createHostCommands(), suite, say)
  const scratch = await mkdtemp(join(cacheFolder(), `${suite}.run-`))
  const node = SUITES[suite].ownNode ? 'own' : dirname(dirname(process.execPath))
  const failed: Step[] = []
  try {
    for (const step of steps) {
      const began = performance.now()
      say(`${step}:`)
      const code = await runStep([ENTER, root, packageRoot, scratch, node, ...COMMANDS[step]], say, signal)
      say(`${step}: ${code === 0 ? 'passed' : `failed with ${code}`} after ${((performance.now() - began) / 1000).toFixed(0)} s`)
      if (code !== 0) failed.push(step)
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
  return failed
}

async function runStep (args: readonly string[], say: (line: string) => void, signal?: AbortSignal): Promise<number> {
  signal?.throwIfAborted()
  const child = spawn('sh', [...args], { stdio: ['ignore', 'pipe', 'pipe'], signal })
  for (const stream of [child.stdout, child.stderr]) {
    let rest = ''
    stream.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) say(`  ${line}`)
    })
  }
  const [code] = await once(child, 'close')
  return typeof code === 'number' ? code : 1
}
