// The user guide and the window name the same keys: a key on a page is in the action table, in a key map, or in a field
// listed here.
#include <set>

#include <QDir>
#include <QFile>
#include <QKeySequence>
#include <QRegularExpression>
#include <QtTest>

#include "app/ui/shell/main_window.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/timeline/key_map.h"

using namespace stagewright;

namespace {

// Keys of the fields and lists themselves.
const char* const ofFields[] = {"Shift+Return", "Ctrl+Return", "Ctrl+Space",  "Ctrl+Up",
                                "Ctrl+Down",    "Shift+Left",  "Shift+Right", "F2"};
// Keys with the same meaning everywhere.
const char* const everywhere[] = {"Return", "Esc",  "Tab", "Space", "Left",   "Right", "Up",
                                  "Down",   "Home", "End", "PgUp",  "PgDown", "Del",   "Backspace"};

QString portable(QString word)
{
    static const std::pair<const char*, const char*> names[] = {
        {"PgDn", "PgDown"}, {"Enter", "Return"}, {"Delete", "Del"}, {"←", "Left"},
        {"→", "Right"},     {"↑", "Up"},         {"↓", "Down"},     {"−", "-"}};
    for (const auto& [from, to] : names) word.replace(QString::fromUtf8(from), QLatin1String(to));
    return QKeySequence(word, QKeySequence::PortableText).toString(QKeySequence::PortableText);
}

std::set<QString> known()
{
    std::set<QString> keys;
    MainWindow window;
    for (const auto& [entry, action] : window.workspace().actions().all())
        for (const QString& key : entry.keys.split(QLatin1Char('|'), Qt::SkipEmptyParts)) keys.insert(portable(key));
    for (const KeyMapName map : {KeyMapName::Perfetto, KeyMapName::Nsight, KeyMapName::Tracy})
        for (const KeyBinding& binding : keyMap(map))
            for (const QKeySequence& key : binding.keys) keys.insert(key.toString(QKeySequence::PortableText));
    for (const char* key : ofFields) keys.insert(QLatin1String(key));
    for (const char* key : everywhere) keys.insert(QLatin1String(key));
    return keys;
}

// Keys in a text: chords anywhere; in a table's column of keys also single keys.
QStringList keysIn(const QString& line, bool table, int column)
{
    QStringList keys;
    static const QRegularExpression chord(
        QStringLiteral("(?:(?:Ctrl|Shift|Alt)\\+)+(PgUp|PgDn|PgDown|Home|End|Return|Enter|Space|Left|Right|Up|Down|Del|"
                       "Ins|F\\d+|[←→↑↓]|[A-Z0-9.,=+/>−-])(?![a-z])"));
    auto found = chord.globalMatch(line);
    while (found.hasNext()) keys << found.next().captured();
    if (!table) return keys;
    const QString cell = line.split(QLatin1Char('|')).value(column + 1);
    static const QRegularExpression single(QStringLiteral("^(F\\d+|[A-Z]|[\\[\\]?:/.,])$"));
    for (QString word : cell.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        word.remove(QLatin1Char('`'));
        if (word.size() > 1) word.remove(QRegularExpression(QStringLiteral("[;,]$")));
        if (single.match(word).hasMatch()) keys << word;
    }
    return keys;
}

} // namespace

class TestGuide : public QObject {
    Q_OBJECT

private slots:
    void keysOfTheGuideAreKeysOfTheWindow()
    {
        const std::set<QString> keys = known();
        const QDir folder(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/docs/guide"));
        const QStringList pages = folder.entryList({QStringLiteral("*.md")});
        QVERIFY(pages.size() > 10);
        int seen = 0;
        QStringList strange;
        for (const QString& page : pages) {
            QFile file(folder.filePath(page));
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QStringList lines = QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'));
            int column = -1; // column of keys in the current table
            for (qsizetype i = 0; i < lines.size(); ++i) {
                const bool table = lines[i].startsWith(QLatin1Char('|'));
                if (!table) column = -1;
                if (table && i + 1 < lines.size() && lines[i + 1].startsWith(QLatin1String("|---"))) {
                    const QStringList titles = lines[i].mid(1).split(QLatin1Char('|'));
                    for (qsizetype c = 0; c < titles.size(); ++c)
                        if (titles[c].trimmed() == QLatin1String("key") || titles[c].trimmed() == QLatin1String("keys"))
                            column = static_cast<int>(c);
                    continue;
                }
                for (const QString& key : keysIn(lines[i], column >= 0, column)) {
                    ++seen;
                    if (keys.count(portable(key)) == 0)
                        strange << QStringLiteral("%1:%2: %3").arg(page).arg(i + 1).arg(key);
                }
            }
        }
        QVERIFY2(strange.isEmpty(), qPrintable(strange.join(QLatin1String("; "))));
        QVERIFY2(seen > 100, qPrintable(QString::number(seen)));
    }

    // Pages, pictures and headings that a page links to exist.
    void linksOfTheGuideLead()
    {
        const QDir folder(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/docs/guide"));
        QStringList files{QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/README.md")};
        for (const QString& page : folder.entryList({QStringLiteral("*.md")})) files << folder.filePath(page);
        static const QRegularExpression link(QStringLiteral("\\]\\(([^)#:]+)(#[^)]*)?\\)"));
        QStringList lost;
        int seen = 0;
        for (const QString& path : files) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::ReadOnly));
            auto found = link.globalMatch(QString::fromUtf8(file.readAll()));
            while (found.hasNext()) {
                const QString to = found.next().captured(1);
                ++seen;
                if (!QFileInfo::exists(QFileInfo(path).dir().filePath(to)))
                    lost << QFileInfo(path).fileName() + QStringLiteral(": ") + to;
            }
        }
        QVERIFY2(lost.isEmpty(), qPrintable(lost.join(QLatin1String("; "))));
        QVERIFY(seen > 30);
        // every page is in the index
        QFile index(folder.filePath(QStringLiteral("README.md")));
        QVERIFY(index.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(index.readAll());
        for (const QString& page : folder.entryList({QStringLiteral("*.md")}))
            QVERIFY2(page == QLatin1String("README.md") || text.contains(QStringLiteral("(%1)").arg(page)),
                     qPrintable(page));
    }
};

QTEST_MAIN(TestGuide)
#include "tst_guide.moc"
