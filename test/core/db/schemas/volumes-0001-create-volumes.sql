CREATE TABLE `volumes_migrations` (`name` varchar(191), `state` varchar(16) not null, `applied_at` bigint not null, primary key (`name`));
CREATE TABLE `volumes_volumes` (`id` varchar(64), `host_id` varchar(64) not null, `status` varchar(16) not null, `name` varchar(63) not null, `size_gb` integer not null, `tags` text not null, `created_at` bigint not null, `generation` bigint not null, `turns` bigint not null, primary key (`id`));
CREATE INDEX `volumes_volumes_host_id_index` on `volumes_volumes` (`host_id`);
INSERT INTO `volumes_migrations` (`name`, `state`, `applied_at`) VALUES ('0001-create-volumes', 'done', 0);
INSERT INTO `volumes_volumes` (`id`, `host_id`, `status`, `name`, `size_gb`, `tags`, `created_at`, `generation`, `turns`) VALUES ('id 0', 'host', 'ready', 'Data', 1, 'tags 0', 1700000000000, 1700000000000, 1700000000000);
INSERT INTO `volumes_volumes` (`id`, `host_id`, `status`, `name`, `size_gb`, `tags`, `created_at`, `generation`, `turns`) VALUES ('id 1', 'host', 'ready', 'data', 2000, 'tags 1', 1700000000001, 1700000000001, 1700000000001);
INSERT INTO `volumes_volumes` (`id`, `host_id`, `status`, `name`, `size_gb`, `tags`, `created_at`, `generation`, `turns`) VALUES ('id 2', 'host', 'deleting', 'other', 3, 'tags 2', 1700000000002, 1700000000002, 1700000000002);
