// Ingresses with their rules as JSON, and what each of them claims: nobody else can have the same host, port and path.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('ingress_ingresses', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.string('name', 63).notNullable()
    table.text('tags', 'mediumtext').notNullable()
    table.text('rules', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
    table.unique(['host_id', 'name'], { indexName: 'ingress_ingresses_name' })
  })
  await knex.schema.createTable('ingress_claims', (table) => {
    table.string('host_id', 64).notNullable()
    table.string('claim', 64).notNullable().comment('SHA-256 of port, host and path')
    table.string('ingress_id', 64).notNullable().index()
    table.primary(['host_id', 'claim'])
  })
}

// Each by itself: on MySQL a kill may have come between the two.
export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTableIfExists('ingress_claims')
  await knex.schema.dropTableIfExists('ingress_ingresses')
}
