-- sent: simple
SET application_name = 'PostgreSQL JDBC Driver'
-- ;
-- sent: extended
-- columns: "?column?" int4
SELECT 1
-- ;
-- sent: extended
-- columns: transaction_isolation text
SHOW TRANSACTION ISOLATION LEVEL
-- ;
-- sent: simple

-- ;
-- sent: extended
-- columns: current_schema name
select current_schema()
-- ;
-- sent: extended
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE
-- ;
-- sent: extended
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
-- ;
-- sent: extended
CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, part real, ok boolean, name varchar(40) NOT NULL UNIQUE, note text, data bytea, day date, clock time, local timestamp, at timestamptz, doc jsonb, uid uuid)
-- ;
-- sent: extended
-- parameters: int2, int8, numeric, float8, float4, bool, varchar, varchar, bytea, unspecified, unspecified, unspecified, unspecified, jsonb, uuid
INSERT INTO kinds (small, big, price, ratio, part, ok, name, note, data, day, clock, local, at, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
-- ;
-- sent: extended
-- parameters: int2, int8, numeric, float8, float4, bool, varchar, varchar, bytea, date, unspecified, timestamp, timestamptz, jsonb, uuid
INSERT INTO kinds (small, big, price, ratio, part, ok, name, note, data, day, clock, local, at, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], note text, data bytea, day date, clock time, local timestamp, at timestamptz, doc jsonb, uid uuid
SELECT * FROM kinds ORDER BY id
-- ;
-- sent: extended
-- columns: oid oid, attnum int2, attname name, relname name, nspname name, "?column?" bool, "?column?" bool
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT 25976 AS oid , 1 AS attnum UNION ALL SELECT 25976, 2 UNION ALL SELECT 25976, 3 UNION ALL SELECT 25976, 4 UNION ALL SELECT 25976, 5 UNION ALL SELECT 25976, 6 UNION ALL SELECT 25976, 7 UNION ALL SELECT 25976, 8 UNION ALL SELECT 25976, 9 UNION ALL SELECT 25976, 10 UNION ALL SELECT 25976, 11 UNION ALL SELECT 25976, 12 UNION ALL SELECT 25976, 13 UNION ALL SELECT 25976, 14 UNION ALL SELECT 25976, 15 UNION ALL SELECT 25976, 16) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum) where c.oid in (25976)
-- ;
-- sent: extended
-- parameters: unspecified, unspecified, unspecified, numeric, uuid, int4
-- described: date, timestamp, timestamptz, numeric, uuid, int4
-- columns: count int8
SELECT count(*) FROM kinds WHERE day = $1 AND local = $2 AND at = $3 AND price = $4 AND uid = $5 AND small = $6
-- ;
-- sent: extended
-- parameters: int4, varchar
-- columns: id int4, price numeric[786440], at timestamptz, day date, uid uuid, ratio float8, name varchar[44]
SELECT id, price, at, day, uid, ratio, name FROM kinds WHERE id = $1 AND name <> $2
-- ;
-- sent: extended
CREATE TABLE many (id int PRIMARY KEY, name text, at timestamp)
-- ;
-- sent: simple
BEGIN
-- ;
-- sent: extended
-- parameters: int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified
-- described: int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp
INSERT INTO many (id, name, at) VALUES ($1, $2, $3),($4, $5, $6),($7, $8, $9),($10, $11, $12),($13, $14, $15),($16, $17, $18),($19, $20, $21),($22, $23, $24),($25, $26, $27),($28, $29, $30),($31, $32, $33),($34, $35, $36),($37, $38, $39),($40, $41, $42),($43, $44, $45),($46, $47, $48),($49, $50, $51),($52, $53, $54),($55, $56, $57),($58, $59, $60),($61, $62, $63),($64, $65, $66),($67, $68, $69),($70, $71, $72),($73, $74, $75),($76, $77, $78),($79, $80, $81),($82, $83, $84),($85, $86, $87),($88, $89, $90),($91, $92, $93),($94, $95, $96),($97, $98, $99),($100, $101, $102),($103, $104, $105),($106, $107, $108),($109, $110, $111),($112, $113, $114),($115, $116, $117),($118, $119, $120),($121, $122, $123),($124, $125, $126),($127, $128, $129),($130, $131, $132),($133, $134, $135),($136, $137, $138),($139, $140, $141),($142, $143, $144),($145, $146, $147),($148, $149, $150),($151, $152, $153),($154, $155, $156),($157, $158, $159),($160, $161, $162),($163, $164, $165),($166, $167, $168),($169, $170, $171),($172, $173, $174),($175, $176, $177),($178, $179, $180),($181, $182, $183),($184, $185, $186),($187, $188, $189),($190, $191, $192),($193, $194, $195),($196, $197, $198),($199, $200, $201),($202, $203, $204),($205, $206, $207),($208, $209, $210),($211, $212, $213),($214, $215, $216),($217, $218, $219),($220, $221, $222),($223, $224, $225),($226, $227, $228),($229, $230, $231),($232, $233, $234),($235, $236, $237),($238, $239, $240),($241, $242, $243),($244, $245, $246),($247, $248, $249),($250, $251, $252),($253, $254, $255),($256, $257, $258),($259, $260, $261),($262, $263, $264),($265, $266, $267),($268, $269, $270),($271, $272, $273),($274, $275, $276),($277, $278, $279),($280, $281, $282),($283, $284, $285),($286, $287, $288),($289, $290, $291),($292, $293, $294),($295, $296, $297),($298, $299, $300),($301, $302, $303),($304, $305, $306),($307, $308, $309),($310, $311, $312),($313, $314, $315),($316, $317, $318),($319, $320, $321),($322, $323, $324),($325, $326, $327),($328, $329, $330),($331, $332, $333),($334, $335, $336),($337, $338, $339),($340, $341, $342),($343, $344, $345),($346, $347, $348),($349, $350, $351),($352, $353, $354),($355, $356, $357),($358, $359, $360),($361, $362, $363),($364, $365, $366),($367, $368, $369),($370, $371, $372),($373, $374, $375),($376, $377, $378),($379, $380, $381),($382, $383, $384),($385, $386, $387),($388, $389, $390),($391, $392, $393),($394, $395, $396),($397, $398, $399),($400, $401, $402),($403, $404, $405),($406, $407, $408),($409, $410, $411),($412, $413, $414),($415, $416, $417),($418, $419, $420),($421, $422, $423),($424, $425, $426),($427, $428, $429),($430, $431, $432),($433, $434, $435),($436, $437, $438),($439, $440, $441),($442, $443, $444),($445, $446, $447),($448, $449, $450),($451, $452, $453),($454, $455, $456),($457, $458, $459),($460, $461, $462),($463, $464, $465),($466, $467, $468),($469, $470, $471),($472, $473, $474),($475, $476, $477),($478, $479, $480),($481, $482, $483),($484, $485, $486),($487, $488, $489),($490, $491, $492),($493, $494, $495),($496, $497, $498),($499, $500, $501),($502, $503, $504),($505, $506, $507),($508, $509, $510),($511, $512, $513),($514, $515, $516),($517, $518, $519),($520, $521, $522),($523, $524, $525),($526, $527, $528),($529, $530, $531),($532, $533, $534),($535, $536, $537),($538, $539, $540),($541, $542, $543),($544, $545, $546),($547, $548, $549),($550, $551, $552),($553, $554, $555),($556, $557, $558),($559, $560, $561),($562, $563, $564),($565, $566, $567),($568, $569, $570),($571, $572, $573),($574, $575, $576),($577, $578, $579),($580, $581, $582),($583, $584, $585),($586, $587, $588),($589, $590, $591),($592, $593, $594),($595, $596, $597),($598, $599, $600),($601, $602, $603),($604, $605, $606),($607, $608, $609),($610, $611, $612),($613, $614, $615),($616, $617, $618),($619, $620, $621),($622, $623, $624),($625, $626, $627),($628, $629, $630),($631, $632, $633),($634, $635, $636),($637, $638, $639),($640, $641, $642),($643, $644, $645),($646, $647, $648),($649, $650, $651),($652, $653, $654),($655, $656, $657),($658, $659, $660),($661, $662, $663),($664, $665, $666),($667, $668, $669),($670, $671, $672),($673, $674, $675),($676, $677, $678),($679, $680, $681),($682, $683, $684),($685, $686, $687),($688, $689, $690),($691, $692, $693),($694, $695, $696),($697, $698, $699),($700, $701, $702),($703, $704, $705),($706, $707, $708),($709, $710, $711),($712, $713, $714),($715, $716, $717),($718, $719, $720),($721, $722, $723),($724, $725, $726),($727, $728, $729),($730, $731, $732),($733, $734, $735),($736, $737, $738),($739, $740, $741),($742, $743, $744),($745, $746, $747),($748, $749, $750),($751, $752, $753),($754, $755, $756),($757, $758, $759),($760, $761, $762),($763, $764, $765),($766, $767, $768)
-- ;
-- sent: extended
-- parameters: int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified
-- described: int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp
INSERT INTO many (id, name, at) VALUES ($1, $2, $3),($4, $5, $6),($7, $8, $9),($10, $11, $12),($13, $14, $15),($16, $17, $18),($19, $20, $21),($22, $23, $24),($25, $26, $27),($28, $29, $30),($31, $32, $33),($34, $35, $36),($37, $38, $39),($40, $41, $42),($43, $44, $45),($46, $47, $48),($49, $50, $51),($52, $53, $54),($55, $56, $57),($58, $59, $60),($61, $62, $63),($64, $65, $66),($67, $68, $69),($70, $71, $72),($73, $74, $75),($76, $77, $78),($79, $80, $81),($82, $83, $84),($85, $86, $87),($88, $89, $90),($91, $92, $93),($94, $95, $96)
-- ;
-- sent: extended
-- parameters: int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified
-- described: int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp
INSERT INTO many (id, name, at) VALUES ($1, $2, $3),($4, $5, $6),($7, $8, $9),($10, $11, $12),($13, $14, $15),($16, $17, $18),($19, $20, $21),($22, $23, $24)
-- ;
-- sent: extended
-- parameters: int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified, int4, varchar, unspecified
-- described: int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp, int4, varchar, timestamp
INSERT INTO many (id, name, at) VALUES ($1, $2, $3),($4, $5, $6),($7, $8, $9),($10, $11, $12)
-- ;
-- sent: extended
COMMIT
-- ;
-- sent: extended
-- parameters: int4, varchar, unspecified, int4, varchar, unspecified
-- described: int4, varchar, timestamp, int4, varchar, timestamp
-- fails: 23505 duplicate key value violates unique constraint "many_pkey"
INSERT INTO many (id, name, at) VALUES ($1, $2, $3),($4, $5, $6)
-- ;
-- sent: extended
ROLLBACK
-- ;
-- sent: extended
-- parameters: varchar, int4
UPDATE many SET name = $1 WHERE id < $2
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM many
-- ;
-- sent: extended
-- parameters: varchar
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], note text, data bytea, day date, clock time, local timestamp, at timestamptz, doc jsonb, uid uuid
INSERT INTO kinds (name) VALUES ($1)
RETURNING *
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: id int4
INSERT INTO kinds (name) VALUES ($1), ($2)
RETURNING "id"
-- ;
-- sent: extended
-- columns: id int4
SELECT id FROM many ORDER BY id
-- ;
-- sent: extended
CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))
-- ;
-- sent: extended
INSERT INTO strict VALUES (1, NULL, 'a', 1)
-- ;
-- sent: extended
-- fails: 23502 null value in column "name" of relation "strict" violates not-null constraint
INSERT INTO strict VALUES (2, NULL, NULL, 1)
-- ;
-- sent: extended
-- fails: 23503 insert or update on table "strict" violates foreign key constraint "strict_parent_fkey"
INSERT INTO strict VALUES (2, 99, 'a', 1)
-- ;
-- sent: extended
-- fails: 23514 new row for relation "strict" violates check constraint "grown"
INSERT INTO strict VALUES (2, NULL, 'a', 0)
-- ;
-- sent: extended
-- fails: 22001 value too long for type character varying(5)
INSERT INTO strict VALUES (2, NULL, 'abcdef', 1)
-- ;
-- sent: extended
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: extended
-- fails: 42601 syntax error at or near "SELEC"
SELEC 1
-- ;
-- sent: extended
-- parameters: int4
-- fails: 42883 operator does not exist: character varying = integer
SELECT count(*) FROM strict WHERE name = $1
-- ;
-- sent: extended
CREATE TABLE ledger (id int PRIMARY KEY)
-- ;
-- sent: extended
INSERT INTO ledger VALUES (1)
-- ;
-- sent: extended
INSERT INTO ledger VALUES (2)
-- ;
-- sent: extended
SAVEPOINT "inside"
-- ;
-- sent: extended
ROLLBACK TO SAVEPOINT "inside"
-- ;
-- sent: extended
SAVEPOINT JDBC_SAVEPOINT_0
-- ;
-- sent: extended
INSERT INTO ledger VALUES (3)
-- ;
-- sent: extended
RELEASE SAVEPOINT JDBC_SAVEPOINT_0
-- ;
-- sent: simple
BEGIN READ ONLY
-- ;
-- sent: extended
-- fails: 25006 cannot execute INSERT in a read-only transaction
INSERT INTO ledger VALUES (4)
-- ;
-- sent: extended
-- columns: sum int8
SELECT sum(id) FROM ledger
-- ;
-- sent: extended
CREATE TABLE parents (a int, b varchar(10), PRIMARY KEY (b, a))
-- ;
-- sent: extended
CREATE TABLE children (id bigserial PRIMARY KEY, a int NOT NULL, b varchar(10) DEFAULT 'x', price numeric(8,3), CONSTRAINT of_parents FOREIGN KEY (b, a) REFERENCES parents (b, a) ON DELETE CASCADE)
-- ;
-- sent: extended
CREATE INDEX children_price ON children (price DESC, id)
-- ;
-- sent: extended
CREATE VIEW names AS SELECT name FROM kinds
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, TABLE_TYPE text, REMARKS text, TYPE_CAT text, TYPE_SCHEM text, TYPE_NAME text, SELF_REFERENCING_COL_NAME text, REF_GENERATION text
SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME",  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS "TABLE_TYPE", d.description AS "REMARKS",  '' as "TYPE_CAT", '' as "TYPE_SCHEM", '' as "TYPE_NAME", '' AS "SELF_REFERENCING_COL_NAME", '' AS "REF_GENERATION"  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND n.nspname LIKE $1 AND c.relname LIKE $2 AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) )  ORDER BY "TABLE_TYPE","TABLE_SCHEM","TABLE_NAME"
-- ;
-- sent: extended
-- parameters: varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, TABLE_TYPE text, REMARKS text, TYPE_CAT text, TYPE_SCHEM text, TYPE_NAME text, SELF_REFERENCING_COL_NAME text, REF_GENERATION text
SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME",  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS "TABLE_TYPE", d.description AS "REMARKS",  '' as "TYPE_CAT", '' as "TYPE_SCHEM", '' as "TYPE_NAME", '' AS "SELF_REFERENCING_COL_NAME", '' AS "REF_GENERATION"  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND c.relname LIKE $1 ORDER BY "TABLE_TYPE","TABLE_SCHEM","TABLE_NAME"
-- ;
-- sent: extended
-- columns: current_catalog name
select current_catalog
-- ;
-- sent: extended
-- parameters: varchar, varchar, varchar
-- columns: current_database name, nspname name, relname name, attname name, atttypid oid, attnotnull bool, atttypmod int4, attlen int2, typtypmod int4, attnum int8, attidentity char, attgenerated char, adsrc text, description text, typbasetype oid, typtype char
SELECT * FROM (SELECT current_database() AS current_database, n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull  OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE $1 AND c.relname LIKE $2) c WHERE true  AND attname LIKE $3 ORDER BY nspname,c.relname,attnum
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, COLUMN_NAME name, KEY_SEQ int4, PK_NAME name
SELECT        result.TABLE_CAT AS "TABLE_CAT",        result.TABLE_SCHEM AS "TABLE_SCHEM",        result.TABLE_NAME AS "TABLE_NAME",        result.COLUMN_NAME AS "COLUMN_NAME",        result.KEY_SEQ AS "KEY_SEQ",        result.PK_NAME AS "PK_NAME"FROM      (SELECT current_database() AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,   (information_schema._pg_expandarray(con.conkey)).n AS KEY_SEQ, con.conname AS PK_NAME,   information_schema._pg_expandarray(con.conkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_constraint con   JOIN pg_catalog.pg_class ct ON (con.conrelid = ct.oid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_attribute a ON (a.attrelid = ct.oid) WHERE con.contype = 'p'  AND n.nspname = $1 AND ct.relname = $2 ) result where  result.A_ATTNUM = (result.KEYS).x  ORDER BY result.table_name, result.pk_name, result.key_seq
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
-- parameters: varchar, varchar
-- columns: PKTABLE_CAT name, PKTABLE_SCHEM name, PKTABLE_NAME name, PKCOLUMN_NAME name, FKTABLE_CAT name, FKTABLE_SCHEM name, FKTABLE_NAME name, FKCOLUMN_NAME name, KEY_SEQ int4, UPDATE_RULE int4, DELETE_RULE int4, FK_NAME name, PK_NAME name, DEFERRABILITY int4
SELECT current_database() AS "PKTABLE_CAT", pkn.nspname AS "PKTABLE_SCHEM", pkc.relname AS "PKTABLE_NAME", pka.attname AS "PKCOLUMN_NAME", current_database() AS "FKTABLE_CAT", fkn.nspname AS "FKTABLE_SCHEM", fkc.relname AS "FKTABLE_NAME", fka.attname AS "FKCOLUMN_NAME", pos.n AS "KEY_SEQ", CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "UPDATE_RULE", CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "DELETE_RULE", con.conname AS "FK_NAME", pkic.relname AS "PK_NAME", CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS "DEFERRABILITY"  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND pkn.nspname = $1 AND pkc.relname = $2 ORDER BY fkn.nspname,fkc.relname,con.conname,pos.n
-- ;
-- sent: extended
-- parameters: varchar, varchar, varchar, varchar
-- columns: PKTABLE_CAT name, PKTABLE_SCHEM name, PKTABLE_NAME name, PKCOLUMN_NAME name, FKTABLE_CAT name, FKTABLE_SCHEM name, FKTABLE_NAME name, FKCOLUMN_NAME name, KEY_SEQ int4, UPDATE_RULE int4, DELETE_RULE int4, FK_NAME name, PK_NAME name, DEFERRABILITY int4
SELECT current_database() AS "PKTABLE_CAT", pkn.nspname AS "PKTABLE_SCHEM", pkc.relname AS "PKTABLE_NAME", pka.attname AS "PKCOLUMN_NAME", current_database() AS "FKTABLE_CAT", fkn.nspname AS "FKTABLE_SCHEM", fkc.relname AS "FKTABLE_NAME", fka.attname AS "FKCOLUMN_NAME", pos.n AS "KEY_SEQ", CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "UPDATE_RULE", CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS "DELETE_RULE", con.conname AS "FK_NAME", pkic.relname AS "PK_NAME", CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS "DEFERRABILITY"  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND pkn.nspname = $1 AND fkn.nspname = $2 AND pkc.relname = $3 AND fkc.relname = $4 ORDER BY fkn.nspname,fkc.relname,con.conname,pos.n
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: TABLE_CAT name, TABLE_SCHEM name, TABLE_NAME name, NON_UNIQUE bool, INDEX_QUALIFIER text, INDEX_NAME name, TYPE int4, ORDINAL_POSITION int4, COLUMN_NAME text, ASC_OR_DESC text, CARDINALITY float4, PAGES int4, FILTER_CONDITION text, REMARKS text
SELECT     tmp.TABLE_CAT AS "TABLE_CAT",     tmp.TABLE_SCHEM AS "TABLE_SCHEM",     tmp.TABLE_NAME AS "TABLE_NAME",     tmp.NON_UNIQUE AS "NON_UNIQUE",     tmp.INDEX_QUALIFIER AS "INDEX_QUALIFIER",     tmp.INDEX_NAME AS "INDEX_NAME",     tmp.TYPE AS "TYPE",     tmp.ORDINAL_POSITION AS "ORDINAL_POSITION",     trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS "COLUMN_NAME",   CASE tmp.AM_NAME     WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint       WHEN 1 THEN 'D'       ELSE 'A'     END     ELSE NULL   END AS "ASC_OR_DESC",     tmp.CARDINALITY AS "CARDINALITY",     tmp.PAGES AS "PAGES",     tmp.FILTER_CONDITION AS "FILTER_CONDITION",     tmp.REMARKS AS "REMARKS"FROM (SELECT current_database() AS TABLE_CAT,  n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE,   NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME,   CASE i.indisclustered     WHEN true THEN 1    ELSE CASE am.amname       WHEN 'hash' THEN 2      ELSE 3    END   END AS TYPE,   (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION,   ci.reltuples AS CARDINALITY,   ci.relpages AS PAGES,   pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION,   ci.oid AS CI_OID,   i.indoption AS I_INDOPTION,   am.amname AS AM_NAME,   d.description AS REMARKS FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)   JOIN pg_catalog.pg_am am ON (ci.relam = am.oid)   LEFT JOIN pg_catalog.pg_description d ON (ci.oid = d.objoid) WHERE true  AND n.nspname = $1 AND ct.relname = $2) AS tmp ORDER BY "NON_UNIQUE", "TYPE", "INDEX_NAME", "ORDINAL_POSITION"
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: attname name, atttypid oid, atttypmod int4
SELECT a.attname, a.atttypid, atttypmod FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN (SELECT i.indexrelid, i.indrelid, i.indisprimary,              information_schema._pg_expandarray(i.indkey) AS keys         FROM pg_catalog.pg_index i) i     ON (a.attnum = (i.keys).x AND a.attrelid = i.indrelid) WHERE true  AND n.nspname = $1 AND ct.relname = $2 AND i.indisprimary  ORDER BY a.attnum
-- ;
-- sent: extended
-- columns: TABLE_SCHEM name, TABLE_CATALOG name
SELECT nspname AS "TABLE_SCHEM", current_database() AS "TABLE_CATALOG" FROM pg_catalog.pg_namespace  WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_'  OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_'  OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))  ORDER BY "TABLE_SCHEM"
-- ;
-- sent: extended
-- columns: TABLE_CAT name
SELECT datname AS "TABLE_CAT" FROM pg_catalog.pg_database WHERE datallowconn = true ORDER BY datname
-- ;
-- sent: extended
-- columns: typname name, oid oid
SELECT t.typname,t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid)  WHERE n.nspname  != 'pg_toast' AND  (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid))
-- ;
-- sent: extended
-- columns: is_array bool, typtype char, typname name, oid oid
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  ORDER BY sp.r, pg_type.oid DESC
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: current_database name, nspname name, relname name, rolname name, relacl _aclitem
SELECT current_database() AS current_database, n.nspname,c.relname,r.rolname,c.relacl  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c, pg_catalog.pg_roles r  WHERE c.relnamespace = n.oid  AND c.relowner = r.oid  AND c.relkind IN ('r','p','v','m','f')  AND n.nspname LIKE $1 AND c.relname LIKE $2 ORDER BY nspname, relname
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: FUNCTION_CAT name, FUNCTION_SCHEM name, FUNCTION_NAME name, REMARKS text, FUNCTION_TYPE int4, SPECIFIC_NAME text
SELECT current_database() AS "FUNCTION_CAT",  n.nspname AS "FUNCTION_SCHEM", p.proname AS "FUNCTION_NAME",  d.description AS "REMARKS",  CASE    WHEN (format_type(p.prorettype, null) = 'unknown') THEN 0   WHEN      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'TABLE') OR      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'SETOF') THEN 2   ELSE 1 END  AS "FUNCTION_TYPE",  p.proname || '_' || p.oid AS "SPECIFIC_NAME" FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON p.pronamespace=n.oid LEFT JOIN pg_catalog.pg_description d ON p.oid=d.objoid WHERE true   AND p.prokind='f' AND n.nspname LIKE $1 AND p.proname LIKE $2 ORDER BY "FUNCTION_SCHEM", "FUNCTION_NAME", p.oid::text
-- ;
-- sent: extended
-- parameters: varchar, varchar
-- columns: PROCEDURE_CAT name, PROCEDURE_SCHEM name, PROCEDURE_NAME name, "?column?" text, "?column?" text, "?column?" text, REMARKS text, PROCEDURE_TYPE int4, SPECIFIC_NAME text
SELECT current_database() AS "PROCEDURE_CAT",  n.nspname AS "PROCEDURE_SCHEM", p.proname AS "PROCEDURE_NAME", NULL, NULL, NULL, d.description AS "REMARKS", 2 AS "PROCEDURE_TYPE",  p.proname || '_' || p.oid AS "SPECIFIC_NAME"  FROM pg_catalog.pg_namespace n, pg_catalog.pg_proc p  LEFT JOIN pg_catalog.pg_description d ON (p.oid=d.objoid)  LEFT JOIN pg_catalog.pg_class c ON (d.classoid=c.oid AND c.relname='pg_proc')  LEFT JOIN pg_catalog.pg_namespace pn ON (c.relnamespace=pn.oid AND pn.nspname='pg_catalog')  WHERE p.pronamespace=n.oid  AND p.prokind='p' AND n.nspname LIKE $1 AND p.proname LIKE $2 ORDER BY "PROCEDURE_SCHEM", "PROCEDURE_NAME", p.oid::text
-- ;
-- sent: extended
DROP VIEW names
-- ;
-- sent: simple
COPY ledger FROM STDIN
-- ;
-- sent: simple
COPY (SELECT id FROM ledger WHERE id >= 10 ORDER BY id) TO STDOUT WITH (FORMAT csv)
-- ;
-- sent: simple
-- columns: name varchar[44]
SELECT name FROM kinds WHERE id = ('1'::int4) AND day = ('2024-02-29 +00') AND at = ('2024-02-29 23:59:59.123456+00')
