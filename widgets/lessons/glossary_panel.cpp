#include "widgets/lessons/glossary_panel.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QGroupBox>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QTextBrowser>
#include <QTextDocumentFragment>
#include <QToolTip>
#include <QVBoxLayout>

#include "widgets/lessons/page_reading.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

QString htmlOf(const lessons::Term& term)
{
    QString html =
        u"<p style=\"font-size:15px; font-weight:600; margin:0 0 6px 0\">%1</p>"_s.arg(qs(term.name).toHtmlEscaped());
    if (!term.aliases.empty()) {
        QStringList names;
        for (const std::string& alias : term.aliases) names << qs(alias).toHtmlEscaped();
        html += u"<p style=\"margin:0 0 8px 0\"><i>%1</i></p>"_s.arg(u"Also: %1"_s.arg(names.join(u"; "_s)));
    }
    for (const QString& paragraph : qs(term.definition).split(u"\n\n"_s))
        html += u"<p style=\"margin:0 0 8px 0\">%1</p>"_s.arg(paragraph.toHtmlEscaped());
    QStringList related;
    for (const std::string& id : term.related)
        if (const lessons::Term* other = lessons::findTerm(id))
            related << u"<a href=\"term:%1\">%2</a>"_s.arg(qs(other->id), qs(other->name).toHtmlEscaped());
    if (!related.isEmpty())
        html += u"<p style=\"margin:0 0 8px 0\">%1</p>"_s.arg(u"See: %1"_s.arg(related.join(u", "_s)));
    if (!term.lesson.empty()) html += u"<p><a href=\"lesson:%1\">%2</a></p>"_s.arg(qs(term.lesson), u"Lesson"_s);
    return html;
}

} // namespace

GlossaryPanel::GlossaryPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 10, 12, 12);
    layout->setSpacing(8);
    m_search = new QLineEdit(this);
    m_search->setObjectName(u"glossarySearch"_s);
    m_search->setPlaceholderText(u"Find a term, also by other tools' names"_s);
    m_search->setAccessibleName(u"Find a term"_s);
    m_search->setClearButtonEnabled(true);
    layout->addWidget(m_search);
    m_list = new QListWidget(this);
    m_list->setObjectName(u"boxed"_s);
    m_list->setAccessibleName(u"Terms"_s);
    layout->addWidget(m_list, 2);
    m_entry = new QTextBrowser(this);
    m_entry->setOpenLinks(false);
    m_entry->setFrameShape(QFrame::NoFrame);
    m_entry->setAccessibleName(u"Definition"_s);
    layout->addWidget(m_entry, 3);
    connect(m_search, &QLineEdit::textChanged, this, &GlossaryPanel::fill);
    connect(m_list, &QListWidget::currentItemChanged, this, [this](const QListWidgetItem* item) {
        if (item != nullptr) describe(lessons::findTerm(item->data(Qt::UserRole).toString().toStdString()));
    });
    connect(m_search, &QLineEdit::returnPressed, this, [this] { m_list->setFocus(); });
    connect(m_entry, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
        if (link.scheme() == "term"_L1) showTerm(link.path());
        if (link.scheme() == "lesson"_L1) emit lessonAsked(link.path());
    });
    fill();
}

void GlossaryPanel::fill()
{
    const QString words = m_search->text().trimmed();
    m_list->clear();
    QList<const lessons::Term*> byName, byDefinition;
    for (const lessons::Term& term : lessons::glossary()) {
        bool named = words.isEmpty() || qs(term.name).contains(words, Qt::CaseInsensitive);
        for (const std::string& alias : term.aliases) named = named || qs(alias).contains(words, Qt::CaseInsensitive);
        if (named)
            byName << &term;
        else if (qs(term.definition).contains(words, Qt::CaseInsensitive))
            byDefinition << &term;
    }
    for (const auto* list : {&byName, &byDefinition})
        for (const lessons::Term* term : *list) {
            auto* item = new QListWidgetItem(qs(term->name), m_list);
            item->setData(Qt::UserRole, qs(term->id));
            item->setToolTip(qs(term->definition));
        }
    if (m_list->count() > 0)
        m_list->setCurrentRow(0);
    else
        m_entry->setHtml(u"<p>No term is named “%1”.</p>"_s.arg(words.toHtmlEscaped()));
}

void GlossaryPanel::describe(const lessons::Term* term)
{
    if (term != nullptr) m_entry->setHtml(htmlOf(*term));
}

void GlossaryPanel::showTerm(const QString& id)
{
    const lessons::Term* term = lessons::findTerm(id.toStdString());
    if (term == nullptr) return;
    m_search->clear();
    for (int i = 0; i < m_list->count(); ++i)
        if (m_list->item(i)->data(Qt::UserRole).toString() == qs(term->id)) m_list->setCurrentRow(i);
    m_list->scrollToItem(m_list->currentItem(), QAbstractItemView::PositionAtCenter);
}

QString GlossaryPanel::shownTerm() const
{
    return m_list->currentItem() != nullptr ? m_list->currentItem()->data(Qt::UserRole).toString() : QString();
}

QString GlossaryPanel::text() const { return m_entry->toPlainText(); }

void GlossaryPanel::search(const QString& words) { m_search->setText(words); }

int GlossaryPanel::found() const { return m_list->count(); }

QString wordsOn(const QWidget* widget, const QPoint& at)
{
    QString words;
    if (const auto* label = qobject_cast<const QLabel*>(widget)) {
        words = label->text();
        if (Qt::mightBeRichText(words)) words = QTextDocumentFragment::fromHtml(words).toPlainText();
    } else if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) {
        words = button->text();
    } else if (const auto* box = qobject_cast<const QGroupBox*>(widget)) {
        words = box->title();
    } else if (widget != nullptr) {
        const auto* view = qobject_cast<const QAbstractItemView*>(widget->parentWidget());
        if (view != nullptr && view->viewport() == widget) words = view->indexAt(at).data().toString();
        if (words.isEmpty()) words = widget->accessibleName();
    }
    return words.remove(u'&');
}

const lessons::Term* termOn(const QWidget* widget, const QPoint& at)
{
    const std::string words = wordsOn(widget, at).toStdString();
    if (words.empty()) return nullptr;
    if (const lessons::Term* whole = lessons::findTerm(words)) return whole;
    const lessons::Term* best = nullptr;
    std::size_t length = 0;
    for (const lessons::Mention& mention : lessons::mentionsIn(words))
        if (mention.length > length) {
            best = mention.term;
            length = mention.length;
        }
    return best;
}

bool TermGuide::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() != QEvent::ToolTip) return QObject::eventFilter(watched, event);
    const auto* widget = qobject_cast<QWidget*>(watched);
    if (qobject_cast<const QLabel*>(widget) == nullptr && qobject_cast<const QAbstractButton*>(widget) == nullptr)
        return QObject::eventFilter(watched, event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const lessons::Term* term = termOn(widget, help->pos());
    if (term == nullptr) return QObject::eventFilter(watched, event);
    QString text = widget->toolTip();
    if (text.isEmpty()) text = qs(term->name) + u": "_s + qs(term->definition);
    if (!Qt::mightBeRichText(text)) text = text.toHtmlEscaped().replace(u'\n', u"<br>"_s);
    const QString names =
        term->aliases.empty() ? QString() : u"also called %1"_s.arg(qs(term->aliases.front()).toHtmlEscaped());
    text += u"<p style=\"margin:5px 0 0 0\"><span style=\"font-weight:600\">%1</span>%2 · %3</p>"_s.arg(
        qs(term->name).toHtmlEscaped(), names.isEmpty() ? QString() : u", "_s + names, u"Shift+F1: glossary"_s);
    QToolTip::showText(help->globalPos(), text, const_cast<QWidget*>(widget));
    return true;
}

} // namespace stagewright
