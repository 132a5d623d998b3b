// Who was greeted on this host. Its rows stand in the server's database, in a table whose name begins with the plugin's.
import { inTransaction, isDuplicate, NameConflict, NotFound, defineError } from 'berth/plugin'
import type { Cradle } from 'berth/plugin'

type Database = Cradle['database']

export interface Greeting {
  readonly name: string
  readonly text: string
  readonly greetedAt: Date
}

/** The service `greeter`, for other plugins. */
export interface Greeter {
  greet (name: string): Promise<Greeting>
}

export const TooManyGreeted = defineError('too_many_greeted', 'conflict', (most: number) => `${most} people have been greeted already (plugins.greeter.config.most)`)

interface Row {
  readonly host_id: string
  readonly name: string
  readonly greeted_at: number
}

const TABLE = 'greeter_greetings'

export class Greetings implements Greeter {
  readonly #database: Database
  readonly #options: { readonly hostId: string, readonly greeting: string, readonly most: number }

  constructor (database: Database, options: { readonly hostId: string, readonly greeting: string, readonly most: number }) {
    this.#database = database
    this.#options = options
  }

  /** @throws name_conflict, too_many_greeted */
  async greet (name: string): Promise<Greeting> {
    const { hostId, most } = this.#options
    const row: Row = { host_id: hostId, name, greeted_at: Date.now() }
    try {
      await inTransaction(this.#database, async (trx) => {
        const [counted] = await trx(TABLE).where({ host_id: hostId }).count({ people: '*' })
        if (Number(counted?.['people']) >= most) throw TooManyGreeted(most)
        await trx(TABLE).insert(row)
      })
    } catch (error) {
      throw isDuplicate(error) ? NameConflict(`${name} has been greeted already`) : error
    }
    return this.#greetingOf(row)
  }

  /** @throws not_found */
  async get (name: string): Promise<Greeting> {
    const row = await this.#database<Row>(TABLE).where({ host_id: this.#options.hostId, name }).first()
    if (row === undefined) throw NotFound('greeting', name)
    return this.#greetingOf(row)
  }

  async count (): Promise<number> {
    const [counted] = await this.#database(TABLE).where({ host_id: this.#options.hostId }).count({ people: '*' })
    return Number(counted?.['people'])
  }

  #greetingOf ({ name, greeted_at: at }: Row): Greeting {
    // MySQL gives a bigint as text.
    return { name, text: `${this.#options.greeting}, ${name}!`, greetedAt: new Date(Number(at)) }
  }
}
