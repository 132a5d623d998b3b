// Instances that a Compose file describes.
import type { CommandSpec, OptionSpec } from '../spec.ts'

const PROJECT: readonly OptionSpec[] = [
  { flags: '-f, --file <file>', description: 'the file; compose.yaml, compose.yml, docker-compose.yaml or docker-compose.yml of this folder when absent' },
  { flags: '-p, --project <name>', description: 'name of the project; else that in the file, else that of its folder' }
]

export const COMPOSE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'compose up', args: '[service...]', summary: 'make what a Compose file describes, and change only what has changed',
    details: 'Images are pulled or built if they are not there. A service whose file or image has changed gets a new instance; its volumes stay. It does not wait for what runs: "berth compose logs --follow" does.',
    options: [...PROJECT, { flags: '--build', description: 'build images also if they are there' }, { flags: '--force-recreate', description: 'make every instance anew' }, { flags: '--remove-orphans', description: 'delete instances of the project that the file does not name' }, { flags: '--wait', description: 'wait until all are running, or healthy where they have a health check' }],
    examples: ['berth compose up', 'berth compose up -f shop/compose.yaml --wait', 'berth compose up --build web'], load: async () => await import('../commands/compose-up.ts')
  },
  { name: 'compose plan', summary: 'what "up" would do', options: PROJECT, examples: ['berth compose plan', 'berth compose plan -f shop/compose.yaml --json'], load: async () => await import('../commands/compose-plan.ts') },
  { name: 'compose ps', summary: 'the instances of a project', options: PROJECT, examples: ['berth compose ps'], load: async () => await import('../commands/compose-ps.ts') },
  { name: 'compose logs', args: '[service...]', summary: 'what services print', options: [...PROJECT, { flags: '--follow', description: 'go on until they stop' }, { flags: '-n, --tail <lines>', description: 'of each at most this many of the last lines (100)' }], examples: ['berth compose logs', 'berth compose logs --follow web db'], load: async () => await import('../commands/compose-logs.ts') },
  { name: 'compose down', summary: 'delete the instances of a project', details: 'Nothing else is touched. Volumes stay.', options: [...PROJECT, { flags: '--volumes', description: 'and its volumes with all that is on them' }], examples: ['berth compose down', 'berth compose down -p shop --volumes'], asks: true, load: async () => await import('../commands/compose-down.ts') }
]
