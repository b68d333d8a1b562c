ALTER TABLE "authors" ALTER COLUMN "name" SET DATA TYPE varchar(120);--> statement-breakpoint
ALTER TABLE "authors" ADD COLUMN "nick" text DEFAULT 'none';--> statement-breakpoint
CREATE INDEX "books_title_index" ON "books" USING btree ("title");--> statement-breakpoint
ALTER TABLE "books" ADD CONSTRAINT "price_not_negative" CHECK ("books"."price" >= 0);
