// The table of those who were greeted. `up` and `down` must bear being ended in the middle, since MySQL commits each statement by itself.
import type { Cradle } from 'berth/plugin'

export async function up (database: Cradle['database']): Promise<void> {
  await database.schema.createTable('greeter_greetings', (table) => {
    table.bigIncrements('number')
    table.string('host_id', 64).notNullable()
    table.string('name', 40).notNullable()
    table.bigInteger('greeted_at').notNullable()
    table.unique(['host_id', 'name'], { indexName: 'greeter_by_name' })
  })
}

export async function down (database: Cradle['database']): Promise<void> {
  await database.schema.dropTable('greeter_greetings')
}
