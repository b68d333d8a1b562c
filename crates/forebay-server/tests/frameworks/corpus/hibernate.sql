-- sent: simple
SET application_name = 'PostgreSQL JDBC Driver'
-- ;
-- sent: simple
BEGIN
-- ;
-- sent: extended
-- columns: current_schema name
select current_schema()
-- ;
-- sent: extended
-- columns: current_catalog name
select current_catalog
-- ;
-- sent: extended
-- columns: transaction_isolation text
SHOW TRANSACTION ISOLATION LEVEL
-- ;
-- sent: extended
ROLLBACK
-- ;
-- sent: extended
-- columns: string_agg text
select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs,absolute,action,ada,add,admin,after,all,allocate,alter,always,and,any,are,array,as,asc,asensitive,assertion,assignment,asymmetric,at,atomic,attribute,attributes,authorization,avg,before,begin,bernoulli,between,bigint,binary,blob,boolean,both,breadth,by,c,call,called,cardinality,cascade,cascaded,case,cast,catalog,catalog_name,ceil,ceiling,chain,char,char_length,character,character_length,character_set_catalog,character_set_name,character_set_schema,characteristics,characters,check,checked,class_origin,clob,close,coalesce,cobol,code_units,collate,collation,collation_catalog,collation_name,collation_schema,collect,column,column_name,command_function,command_function_code,commit,committed,condition,condition_number,connect,connection_name,constraint,constraint_catalog,constraint_name,constraint_schema,constraints,constructors,contains,continue,convert,corr,corresponding,count,covar_pop,covar_samp,create,cross,cube,cume_dist,current,current_collation,current_date,current_default_transform_group,current_path,current_role,current_time,current_timestamp,current_transform_group_for_type,current_user,cursor,cursor_name,cycle,data,date,datetime_interval_code,datetime_interval_precision,day,deallocate,dec,decimal,declare,default,defaults,deferrable,deferred,defined,definer,degree,delete,dense_rank,depth,deref,derived,desc,describe,descriptor,deterministic,diagnostics,disconnect,dispatch,distinct,domain,double,drop,dynamic,dynamic_function,dynamic_function_code,each,element,else,end,end-exec,equals,escape,every,except,exception,exclude,excluding,exec,execute,exists,exp,external,extract,false,fetch,filter,final,first,float,floor,following,for,foreign,fortran,found,free,from,full,function,fusion,g,general,get,global,go,goto,grant,granted,group,grouping,having,hierarchy,hold,hour,identity,immediate,implementation,in,including,increment,indicator,initially,inner,inout,input,insensitive,insert,instance,instantiable,int,integer,intersect,intersection,interval,into,invoker,is,isolation,join,k,key,key_member,key_type,language,large,last,lateral,leading,left,length,level,like,ln,local,localtime,localtimestamp,locator,lower,m,map,match,matched,max,maxvalue,member,merge,message_length,message_octet_length,message_text,method,min,minute,minvalue,mod,modifies,module,month,more,multiset,mumps,name,names,national,natural,nchar,nclob,nesting,new,next,no,none,normalize,normalized,not,"null",nullable,nullif,nulls,number,numeric,object,octet_length,octets,of,old,on,only,open,option,options,or,order,ordering,ordinality,others,out,outer,output,over,overlaps,overlay,overriding,pad,parameter,parameter_mode,parameter_name,parameter_ordinal_position,parameter_specific_catalog,parameter_specific_name,parameter_specific_schema,partial,partition,pascal,path,percent_rank,percentile_cont,percentile_disc,placing,pli,position,power,preceding,precision,prepare,preserve,primary,prior,privileges,procedure,public,range,rank,read,reads,real,recursive,ref,references,referencing,regr_avgx,regr_avgy,regr_count,regr_intercept,regr_r2,regr_slope,regr_sxx,regr_sxy,regr_syy,relative,release,repeatable,restart,result,return,returned_cardinality,returned_length,returned_octet_length,returned_sqlstate,returns,revoke,right,role,rollback,rollup,routine,routine_catalog,routine_name,routine_schema,row,row_count,row_number,rows,savepoint,scale,schema,schema_name,scope_catalog,scope_name,scope_schema,scroll,search,second,section,security,select,self,sensitive,sequence,serializable,server_name,session,session_user,set,sets,similar,simple,size,smallint,some,source,space,specific,specific_name,specifictype,sql,sqlexception,sqlstate,sqlwarning,sqrt,start,state,statement,static,stddev_pop,stddev_samp,structure,style,subclass_origin,submultiset,substring,sum,symmetric,system,system_user,table,table_name,tablesample,temporary,then,ties,time,timestamp,timezone_hour,timezone_minute,to,top_level_count,trailing,transaction,transaction_active,transactions_committed,transactions_rolled_back,transform,transforms,translate,translation,treat,trigger,trigger_catalog,trigger_name,trigger_schema,trim,true,type,uescape,unbounded,uncommitted,under,union,unique,unknown,unnamed,unnest,update,upper,usage,user,user_defined_type_catalog,user_defined_type_code,user_defined_type_name,user_defined_type_schema,using,value,values,var_pop,var_samp,varchar,varying,view,when,whenever,where,width_bucket,window,with,within,without,work,write,year,zone}'::text[])
-- ;
-- sent: extended
-- columns: version text
select version()
-- ;
-- sent: extended
-- columns: setting text
SELECT setting FROM pg_catalog.pg_settings WHERE name='default_transaction_isolation'
-- ;
-- sent: extended
COMMIT
-- ;
-- sent: extended
-- columns: sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, start_value varchar, minimum_value varchar, maximum_value varchar, increment varchar, cycle_option varchar[7]
select * from information_schema.sequences
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, TABLE_TYPE text, REMARKS text, TYPE_CAT text, TYPE_SCHEM text, TYPE_NAME text, SELF_REFERENCING_COL_NAME text, REF_GENERATION text
SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME",  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS "TABLE_TYPE", d.description AS "REMARKS",  '' as "TYPE_CAT", '' as "TYPE_SCHEM", '' as "TYPE_NAME", '' AS "SELF_REFERENCING_COL_NAME", '' AS "REF_GENERATION"  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND n.nspname LIKE $1 AND c.relname LIKE $2 AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'v' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'm' )  OR ( c.relkind = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) )  ORDER BY "TABLE_TYPE","TABLE_SCHEM","TABLE_NAME"
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: current_database name, nspname name, relname name, attname name, atttypid oid, attnotnull bool, atttypmod int4, attlen int2, typtypmod int4, attnum int8, attidentity char, attgenerated char, adsrc text, description text, typbasetype oid, typtype char
SELECT * FROM (SELECT current_database() AS current_database, n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull  OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE $1) c WHERE true  AND attname LIKE $2 ORDER BY nspname,c.relname,attnum
-- ;
-- sent: extended
create table authors (id bigint not null, born date, name varchar(50) not null, primary key (id))
-- ;
-- sent: extended
create table books (id bigint generated by default as identity, price numeric(10,2), title varchar(255) not null, version integer not null, author_id bigint not null, primary key (id), constraint price_not_negative check (price >= 0))
-- ;
-- sent: extended
create table books_tags (Book_id bigint not null, tags_id uuid not null)
-- ;
-- sent: extended
create table kinds (id integer not null, at timestamp(6) with time zone, big bigint, clock time(0), colour varchar(255) check (colour in ('RED','GREEN')), data bytea, day date, doc jsonb, local timestamp(6), name varchar(40), note text, ok boolean, part float4, price numeric(12,4), ratio float(53), small smallint, uid uuid, primary key (id))
-- ;
-- sent: extended
create table tags (id uuid not null, word varchar(20), primary key (id))
-- ;
-- sent: extended
alter table if exists authors drop constraint if exists UK9mhkwvnfaarcalo4noabrin5j
-- ;
-- sent: extended
alter table if exists authors add constraint UK9mhkwvnfaarcalo4noabrin5j unique (name)
-- ;
-- sent: extended
create index books_price on books (price desc, title)
-- ;
-- sent: extended
alter table if exists books drop constraint if exists one_title_an_author
-- ;
-- sent: extended
alter table if exists books add constraint one_title_an_author unique (author_id, title)
-- ;
-- sent: extended
alter table if exists tags drop constraint if exists UKoahcplp50gxyx4ljsie6xagrv
-- ;
-- sent: extended
alter table if exists tags add constraint UKoahcplp50gxyx4ljsie6xagrv unique (word)
-- ;
-- sent: extended
create sequence authors_seq start with 1 increment by 20
-- ;
-- sent: extended
create sequence kinds_SEQ start with 1 increment by 50
-- ;
-- sent: extended
alter table if exists books add constraint FKfjixh2vym2cvfj3ufxj91jem7 foreign key (author_id) references authors
-- ;
-- sent: extended
alter table if exists books_tags add constraint FK1hmtafmavonwojd60bw3k3a9g foreign key (tags_id) references tags
-- ;
-- sent: extended
alter table if exists books_tags add constraint FK24aindb0esahor494422u1wnk foreign key (Book_id) references books
-- ;
-- sent: extended
-- columns: count int8
select count(*) from books b1_0
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, NON_UNIQUE bool, INDEX_QUALIFIER text, INDEX_NAME name, TYPE int4, ORDINAL_POSITION int4, COLUMN_NAME text, ASC_OR_DESC text, CARDINALITY float4, PAGES int4, FILTER_CONDITION text, REMARKS text
SELECT     tmp.TABLE_CAT AS "TABLE_CAT",     tmp.TABLE_SCHEM AS "TABLE_SCHEM",     tmp.TABLE_NAME AS "TABLE_NAME",     tmp.NON_UNIQUE AS "NON_UNIQUE",     tmp.INDEX_QUALIFIER AS "INDEX_QUALIFIER",     tmp.INDEX_NAME AS "INDEX_NAME",     tmp.TYPE AS "TYPE",     tmp.ORDINAL_POSITION AS "ORDINAL_POSITION",     trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS "COLUMN_NAME",   CASE tmp.AM_NAME     WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint       WHEN 1 THEN 'D'       ELSE 'A'     END     ELSE NULL   END AS "ASC_OR_DESC",     tmp.CARDINALITY AS "CARDINALITY",     tmp.PAGES AS "PAGES",     tmp.FILTER_CONDITION AS "FILTER_CONDITION",     tmp.REMARKS AS "REMARKS"FROM (SELECT current_database() AS TABLE_CAT,  n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE,   NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME,   CASE i.indisclustered     WHEN true THEN 1    ELSE CASE am.amname       WHEN 'hash' THEN 2      ELSE 3    END   END AS TYPE,   (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION,   ci.reltuples AS CARDINALITY,   ci.relpages AS PAGES,   pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION,   ci.oid AS CI_OID,   i.indoption AS I_INDOPTION,   am.amname AS AM_NAME,   d.description AS REMARKS FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)   JOIN pg_catalog.pg_am am ON (ci.relam = am.oid)   LEFT JOIN pg_catalog.pg_description d ON (ci.oid = d.objoid) WHERE true  AND n.nspname = $1 AND ct.relname = $2) AS tmp ORDER BY "NON_UNIQUE", "TYPE", "INDEX_NAME", "ORDINAL_POSITION"
-- ;
-- sent: extended
-- columns: setting text
SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys'
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: PKTABLE_CAT name, PKTABLE_SCHEM name, PKTABLE_NAME name, PKCOLUMN_NAME name, FKTABLE_CAT name, FKTABLE_SCHEM name, FKTABLE_NAME name, FKCOLUMN_NAME name, KEY_SEQ int4, UPDATE_RULE int4, DELETE_RULE int4, FK_NAME name, PK_NAME name, DEFERRABILITY int4
SELECT current_database() AS "PKTABLE_CAT", pkn.nspname AS "PKTABLE_SCHEM", pkc.relname AS "PKTABLE_NAME", pka.attname AS "PKCOLUMN_NAME", current_database() AS "FKTABLE_CAT", fkn.nspname AS "FKTABLE_SCHEM", fkc.relname AS "FKTABLE_NAME", fka.attname AS "FKCOLUMN_NAME", pos.n AS "KEY_SEQ", CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "UPDATE_RULE", CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "DELETE_RULE", con.conname AS "FK_NAME", pkic.relname AS "PK_NAME", CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS "DEFERRABILITY"  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND fkn.nspname = $1 AND fkc.relname = $2 ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n
-- ;
-- sent: extended
-- columns: id int8, born date, name varchar[54]
-- columns: id int8, born date, name varchar[54], nick varchar[34], teacher_id int8
select * from "public"."authors" where 1=0
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 26487 AS oid , 1 AS attnum UNION ALL SELECT 26487, 2 UNION ALL SELECT 26487, 3) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (26487)
-- ;
-- sent: extended
-- columns: id int8, price numeric[655366], title varchar[259], version int4, author_id int8
select * from "public"."books" where 1=0
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 26493 AS oid , 1 AS attnum UNION ALL SELECT 26493, 2 UNION ALL SELECT 26493, 3 UNION ALL SELECT 26493, 4 UNION ALL SELECT 26493, 5) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (26493)
-- ;
-- sent: extended
-- columns: id uuid, word varchar[24]
select * from "public"."tags" where 1=0
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 26510 AS oid , 1 AS attnum UNION ALL SELECT 26510, 2) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (26510)
-- ;
-- sent: extended
-- columns: nextval int8
select nextval('kinds_SEQ')
-- ;
-- sent: extended
-- parameters: unspecified, int8, unspecified, varchar, bytea, unspecified, jsonb, unspecified, varchar, varchar, bool, float4, numeric, float8, int2, uuid, int4
insert into kinds (at,big,clock,colour,data,day,doc,local,name,note,ok,part,price,ratio,small,uid,id) values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17)
-- ;
-- sent: extended
-- parameters: unspecified, int8, unspecified, varchar, bytea, date, unspecified, unspecified, varchar, varchar, bool, float8, numeric, float8, int2, uuid, int4
insert into kinds (at,big,clock,colour,data,day,doc,local,name,note,ok,part,price,ratio,small,uid,id) values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17)
-- ;
-- sent: extended
-- parameters: int4
-- columns: id int4, at timestamptz[6], big int8, clock time[0], colour varchar[259], data bytea, day date, doc jsonb, local timestamp[6], name varchar[44], note text, ok bool, part float4, price numeric[786440], ratio float8, small int2, uid uuid
select k1_0.id,k1_0.at,k1_0.big,k1_0.clock,k1_0.colour,k1_0.data,k1_0.day,k1_0.doc,k1_0.local,k1_0.name,k1_0.note,k1_0.ok,k1_0.part,k1_0.price,k1_0.ratio,k1_0.small,k1_0.uid from kinds k1_0 where k1_0.id=$1
-- ;
-- sent: extended
-- parameters: int2
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.small=$1
-- ;
-- sent: extended
-- parameters: int8
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.big=$1
-- ;
-- sent: extended
-- parameters: numeric
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.price=$1
-- ;
-- sent: extended
-- parameters: float8
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.ratio=$1
-- ;
-- sent: extended
-- parameters: bool
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.ok=$1
-- ;
-- sent: extended
-- parameters: varchar
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.name=$1
-- ;
-- sent: extended
-- parameters: unspecified
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.day=$1
-- ;
-- sent: extended
-- parameters: unspecified
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.clock=$1
-- ;
-- sent: extended
-- parameters: unspecified
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.local=$1
-- ;
-- sent: extended
-- parameters: unspecified
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.at=$1
-- ;
-- sent: extended
-- parameters: uuid
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.uid=$1
-- ;
-- sent: extended
-- parameters: varchar
-- columns: count int8
select count(*) from kinds k1_0 where k1_0.colour=$1
-- ;
-- sent: extended
-- columns: id int4, at timestamptz[6], big int8, clock time[0], colour varchar[259], data bytea, day date, doc jsonb, local timestamp[6], name varchar[44], note text, ok bool, part float4, price numeric[786440], ratio float8, small int2, uid uuid
select k1_0.id,k1_0.at,k1_0.big,k1_0.clock,k1_0.colour,k1_0.data,k1_0.day,k1_0.doc,k1_0.local,k1_0.name,k1_0.note,k1_0.ok,k1_0.part,k1_0.price,k1_0.ratio,k1_0.small,k1_0.uid from kinds k1_0 where k1_0.at is null
-- ;
-- sent: extended
-- columns: nextval int8
select nextval('authors_seq')
-- ;
-- sent: extended
-- parameters: date, varchar, int8
insert into authors (born,name,id) values ($1,$2,$3)
-- ;
-- sent: extended
-- columns: id int8
select distinct a1_0.id from authors a1_0 order by a1_0.id
-- ;
-- sent: extended
delete from authors a1_0
-- ;
-- sent: extended
-- parameters: unspecified, varchar, int8
-- described: date, varchar, int8
insert into authors (born,name,id) values ($1,$2,$3)
-- ;
-- sent: extended
-- parameters: int8, numeric, varchar, int4
-- columns: id int8, price numeric[655366], title varchar[259], version int4, author_id int8
insert into books (author_id,price,title,version) values ($1,$2,$3,$4)
RETURNING *
-- ;
-- sent: extended
-- parameters: varchar, uuid
insert into tags (word,id) values ($1,$2)
-- ;
-- sent: extended
-- parameters: int8, uuid
insert into books_tags (Book_id,tags_id) values ($1,$2)
-- ;
-- sent: extended
-- parameters: int8
-- columns: id int8, born date, name varchar[54]
select a1_0.id,a1_0.born,a1_0.name from authors a1_0 where a1_0.id=$1
-- ;
-- sent: extended
-- parameters: int8
-- columns: author_id int8, id int8, price numeric[655366], title varchar[259], version int4
select b1_0.author_id,b1_0.id,b1_0.price,b1_0.title,b1_0.version from books b1_0 where b1_0.author_id=$1 order by b1_0.title
-- ;
-- sent: extended
-- parameters: int8
-- columns: book_id int8, id uuid, word varchar[24]
select t1_0.Book_id,t1_1.id,t1_1.word from books_tags t1_0 join tags t1_1 on t1_1.id=t1_0.tags_id where t1_0.Book_id=$1
-- ;
-- sent: extended
-- parameters: date, varchar, int8
update authors set born=$1,name=$2 where id=$3
-- ;
-- sent: extended
-- parameters: int8, numeric, varchar, int4, int8, int4
update books set author_id=$1,price=$2,title=$3,version=$4 where id=$5 and version=$6
-- ;
-- sent: extended
-- parameters: int8
-- columns: id int8, author_id int8, id int8, born date, name varchar[54], price numeric[655366], title varchar[259], version int4
select b1_0.id,b1_0.author_id,a1_0.id,a1_0.born,a1_0.name,b1_0.price,b1_0.title,b1_0.version from books b1_0 join authors a1_0 on a1_0.id=b1_0.author_id where b1_0.id=$1
-- ;
-- sent: extended
-- parameters: int8
delete from books_tags where Book_id=$1
-- ;
-- sent: extended
-- parameters: int8, int4
delete from books where id=$1 and version=$2
-- ;
-- sent: extended
-- parameters: int8
delete from authors where id=$1
-- ;
-- sent: extended
-- parameters: int8
-- columns: id int8, born date, name varchar[54], author_id int8, id int8, price numeric[655366], title varchar[259], version int4
select a1_0.id,a1_0.born,a1_0.name,b1_0.author_id,b1_0.id,b1_0.price,b1_0.title,b1_0.version from authors a1_0 left join books b1_0 on a1_0.id=b1_0.author_id where a1_0.id=$1 order by b1_0.title
-- ;
-- sent: extended
-- columns: name varchar[54]
select a1_0.name from authors a1_0
-- ;
-- sent: extended
-- columns: name varchar[54], sum numeric, count int8
select a1_0.name,sum(b1_0.price),count(b1_0.id) from authors a1_0 join books b1_0 on a1_0.id=b1_0.author_id group by a1_0.name having count(b1_0.id)>1
-- ;
-- sent: extended
-- parameters: int4, int4
-- columns: id int8, author_id int8, id int8, born date, name varchar[54], price numeric[655366], title varchar[259], version int4
select b1_0.id,b1_0.author_id,a1_0.id,a1_0.born,a1_0.name,b1_0.price,b1_0.title,b1_0.version from books b1_0 join authors a1_0 on a1_0.id=b1_0.author_id order by b1_0.price desc offset $1 rows fetch first $2 rows only
-- ;
-- sent: extended
-- parameters: varchar, numeric
-- columns: id int8, author_id int8, price numeric[655366], title varchar[259], version int4
select b1_0.id,b1_0.author_id,b1_0.price,b1_0.title,b1_0.version from books b1_0 where lower(b1_0.title) like $1 escape '' and b1_0.price>=$2
-- ;
-- sent: extended
-- parameters: varchar, varchar, varchar
-- columns: count int8
select count(*) from books b1_0 where b1_0.title in ($1,$2,$3) and exists(select 1 from authors a1_0 where a1_0.name ilike 'ANN' escape '')
-- ;
-- sent: extended
-- columns: "?column?" bool, "?column?" text, character_length int4, extract numeric
select coalesce(a1_0.born,current_date)=current_date,(upper(a1_0.name)||'!'),character_length(a1_0.name),extract(year from cast('2024-02-29' as date)) from authors a1_0
-- ;
-- sent: extended
-- columns: title varchar[259], row_number int8
select b1_0.title,row_number() over(order by b1_0.price desc) from books b1_0 order by b1_0.title
-- ;
-- sent: extended
-- parameters: numeric
-- columns: title varchar[259]
select title from books where price = $1
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 26493 AS oid , 3 AS attnum) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (26493)
-- ;
-- sent: extended
update books b1_0 set price=(b1_0.price+1) where b1_0.title='two'
-- ;
-- sent: extended
-- columns: case text
select case when b1_0.price>3 then 'dear' else 'cheap' end from books b1_0 order by b1_0.title
-- ;
-- sent: extended
-- columns: id int8, born date, name varchar[54]
select a1_0.id,a1_0.born,a1_0.name from authors a1_0
-- ;
-- sent: extended
-- fails: 23514 new row for relation "books" violates check constraint "price_not_negative"
update books b1_0 set price=-1
-- ;
-- sent: extended
-- fails: 23502 null value in column "name" of relation "authors" violates not-null constraint
insert into authors (id) values (1000)
-- ;
-- sent: extended
-- fails: 23503 update or delete on table "authors" violates foreign key constraint "fkfjixh2vym2cvfj3ufxj91jem7" on table "books"
delete from authors
-- ;
-- sent: extended
-- fails: 42P01 relation "missing" does not exist
select * from missing
-- ;
-- sent: extended
-- columns: id int8, author_id int8, price numeric[655366], title varchar[259], version int4
select b1_0.id,b1_0.author_id,b1_0.price,b1_0.title,b1_0.version from books b1_0 where b1_0.title='two' for no key update of b1_0
-- ;
-- sent: extended
-- columns: count int8
select count(*) from tags t1_0 where t1_0.word in ('kept','undone')
-- ;
-- sent: extended
-- columns: id int8, author_id int8, price numeric[655366], title varchar[259], version int4
select b1_0.id,b1_0.author_id,b1_0.price,b1_0.title,b1_0.version from books b1_0 where b1_0.title='two'
-- ;
-- sent: extended
alter table if exists authors add column nick varchar(30) default 'none'
-- ;
-- sent: extended
alter table if exists authors add column teacher_id bigint
-- ;
-- sent: extended
create index authors_nick on authors (nick)
-- ;
-- sent: extended
alter table if exists authors add constraint FKcgcff2pxwhhtas9huf7bj08j foreign key (teacher_id) references authors
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 26487 AS oid , 1 AS attnum UNION ALL SELECT 26487, 2 UNION ALL SELECT 26487, 3 UNION ALL SELECT 26487, 4 UNION ALL SELECT 26487, 5) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (26487)
-- ;
-- sent: extended
-- columns: id int8, born date, name varchar[54], nick varchar[34], teacher_id int8
select ca1_0.id,ca1_0.born,ca1_0.name,ca1_0.nick,ca1_0.teacher_id from authors ca1_0 where ca1_0.name='Ann'
-- ;
-- sent: extended
-- parameters: int8
-- columns: id int8, born date, name varchar[54], nick varchar[34], id int8, born date, name varchar[54], nick varchar[34], teacher_id int8
select ca1_0.id,ca1_0.born,ca1_0.name,ca1_0.nick,t1_0.id,t1_0.born,t1_0.name,t1_0.nick,t1_0.teacher_id from authors ca1_0 left join authors t1_0 on t1_0.id=ca1_0.teacher_id where ca1_0.id=$1
-- ;
-- sent: extended
-- parameters: date, varchar, varchar, int8, int8
update authors set born=$1,name=$2,nick=$3,teacher_id=$4 where id=$5
-- ;
-- sent: extended
-- columns: name varchar[54]
select t1_0.name from authors ca1_0 join authors t1_0 on t1_0.id=ca1_0.teacher_id
-- ;
-- sent: extended
set client_min_messages = WARNING
-- ;
-- sent: extended
alter table if exists books drop constraint if exists FKfjixh2vym2cvfj3ufxj91jem7
-- ;
-- sent: extended
alter table if exists books_tags drop constraint if exists FK1hmtafmavonwojd60bw3k3a9g
-- ;
-- sent: extended
alter table if exists books_tags drop constraint if exists FK24aindb0esahor494422u1wnk
-- ;
-- sent: extended
drop table if exists authors cascade
-- ;
-- sent: extended
drop table if exists books cascade
-- ;
-- sent: extended
drop table if exists books_tags cascade
-- ;
-- sent: extended
drop table if exists kinds cascade
-- ;
-- sent: extended
drop table if exists tags cascade
-- ;
-- sent: extended
drop sequence if exists authors_seq
-- ;
-- sent: extended
drop sequence if exists kinds_SEQ
-- ;
-- sent: extended
create sequence authors_seq start with 1 increment by 20
-- ;
-- sent: extended
create sequence kinds_SEQ start with 1 increment by 50
-- ;
-- sent: extended
create table authors (born date, id bigint not null, name varchar(50) not null unique, primary key (id))
-- ;
-- sent: extended
create table books (price numeric(10,2), version integer not null, author_id bigint not null, id bigint generated by default as identity, title varchar(255) not null, primary key (id), constraint one_title_an_author unique (author_id, title), constraint price_not_negative check (price >= 0))
-- ;
-- sent: extended
create table books_tags (Book_id bigint not null, tags_id uuid not null)
-- ;
-- sent: extended
create table kinds (clock time(0), day date, id integer not null, ok boolean, part float4, price numeric(12,4), ratio float(53), small smallint, at timestamp(6) with time zone, big bigint, local timestamp(6), uid uuid, name varchar(40), colour varchar(255) check (colour in ('RED','GREEN')), note text, data bytea, doc jsonb, primary key (id))
-- ;
-- sent: extended
create table tags (id uuid not null, word varchar(20) unique, primary key (id))
-- ;
-- sent: extended
create index books_price on books (price desc, title)
-- ;
-- sent: extended
alter table if exists books add constraint FKfjixh2vym2cvfj3ufxj91jem7 foreign key (author_id) references authors
-- ;
-- sent: extended
alter table if exists books_tags add constraint FK1hmtafmavonwojd60bw3k3a9g foreign key (tags_id) references tags
-- ;
-- sent: extended
alter table if exists books_tags add constraint FK24aindb0esahor494422u1wnk foreign key (Book_id) references books
-- ;
-- sent: extended
alter table if exists books drop constraint if exists FKfjixh2vym2cvfj3ufxj91jem7
-- ;
-- sent: extended
alter table if exists books_tags drop constraint if exists FK1hmtafmavonwojd60bw3k3a9g
-- ;
-- sent: extended
alter table if exists books_tags drop constraint if exists FK24aindb0esahor494422u1wnk
-- ;
-- sent: extended
drop table if exists authors cascade
-- ;
-- sent: extended
drop table if exists books cascade
-- ;
-- sent: extended
drop table if exists books_tags cascade
-- ;
-- sent: extended
drop table if exists kinds cascade
-- ;
-- sent: extended
drop table if exists tags cascade
-- ;
-- sent: extended
drop sequence if exists authors_seq
-- ;
-- sent: extended
drop sequence if exists kinds_SEQ
