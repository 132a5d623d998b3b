/**
 * Tests that are run without a plugin, by their paths below test/ without `.test.ts`. Quick ones that see much: how plugins are found and started, lists of all plugins, their configuration, the API of
 * instances with what is optional for them, and what documents promise.
 */
export const TESTS_WITHOUT = ['core/app', 'core/config/document', 'core/plugins/third-party', 'core/db/page.long', 'plugins/instances/api/routes', 'plugins/instances/validate', 'plugins/instances/workers/workers', 'cli/tree', 'promises', 'security', 'setup/structure']
