CREATE TABLE `core_api_keys` (`id` varchar(32), `name` varchar(191) not null, `hash` varchar(64) not null, `scopes` text not null, `created_at` bigint not null, `expires_at` bigint, `revoked_at` bigint, `last_used_at` bigint, primary key (`id`));
CREATE TABLE `core_migrations` (`name` varchar(191), `state` varchar(16) not null, `applied_at` bigint not null, primary key (`name`));
CREATE UNIQUE INDEX `core_api_keys_hash_unique` on `core_api_keys` (`hash`);
INSERT INTO `core_api_keys` (`id`, `name`, `hash`, `scopes`, `created_at`, `expires_at`, `revoked_at`, `last_used_at`) VALUES ('id 0', 'name 0', 'hash 0', '["instance:read"]', 1700000000000, 1700000000000, 1700000000000, 1700000000000);
INSERT INTO `core_api_keys` (`id`, `name`, `hash`, `scopes`, `created_at`, `expires_at`, `revoked_at`, `last_used_at`) VALUES ('id 1', 'name 1', 'hash 1', '["*"]', 1700000000001, 1700000000001, 1700000000001, 1700000000001);
INSERT INTO `core_api_keys` (`id`, `name`, `hash`, `scopes`, `created_at`, `expires_at`, `revoked_at`, `last_used_at`) VALUES ('id 2', 'name 2', 'hash 2', '["image:write","push:write"]', 1700000000002, null, null, null);
INSERT INTO `core_migrations` (`name`, `state`, `applied_at`) VALUES ('0001-create-api-keys', 'done', 0);
